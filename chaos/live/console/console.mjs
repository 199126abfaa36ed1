// SPDX-License-Identifier: Apache-2.0
// The console: asks /v1/console once a second, shows the answer in place, and turns buttons into requests. Nothing
// is drawn anew that could be changed, so focus, selection and a half-typed delay survive every answer. All text
// goes in as text, for names and items are whatever a client wrote.

import { changesBetween, conflictOf, figuresOf, formatCount, formatMs, linkKey, plural, runOf, viewOf }
  from "./model.mjs";
import { ClusterMap } from "./map.mjs";

const POLL_MS = 1000;
const POLL_HIDDEN_MS = 15000;
const POLL_TROUBLE_MS_MAX = 8000;
const PATIENCE_MS = 5000; // for an answer; the harness itself waits a second for a silent region
const ACTION_PATIENCE_MS = 60000; // a restart answers once the region serves
const CONFLICTS = 20;
const CONFLICTS_EVERY_MS = 2000;
const RUNS_EVERY_MS = 10000;
const LOG_LINES = 40;
const TABLES_SHOWN = 50;

const $ = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function mark(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// ---- Asking

async function ask(method, path, body, patience = PATIENCE_MS) {
  const answer = await fetch(path, {
    method,
    headers: body ? { "content-type": "application/json" } : {},
    body: body && JSON.stringify(body),
    cache: "no-store",
    signal: AbortSignal.timeout(patience),
  });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.error ?? `the control API answered ${answer.status}`);
  return told;
}

const linkPath = (link, verb) => `/v1/links/${encodeURIComponent(link.from)}/${encodeURIComponent(link.to)}/${verb}`;
const regionPath = (name, verb) => `/v1/regions/${encodeURIComponent(name)}/${verb}`;

let view = null;
let timer = 0;
let failures = 0;
let asking = false;
let again = false;

function pollDelay() {
  if (document.hidden) return POLL_HIDDEN_MS;
  return failures ? Math.min(POLL_MS * 2 ** (failures - 1), POLL_TROUBLE_MS_MAX) : POLL_MS;
}

async function poll() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  clearTimeout(timer);
  try {
    const status = await ask("GET", "/v1/console");
    failures = 0;
    show(viewOf(status, view));
    await showConflicts();
    await showRuns();
  } catch (error) {
    failures += 1;
    showTrouble(error);
  }
  asking = false;
  timer = setTimeout(poll, again ? 0 : pollDelay());
  again = false;
}

function showTrouble(error) {
  const away = error instanceof TypeError || error.name === "TimeoutError";
  setPulse(away ? "No answer" : "Trouble", "warn");
  if (!away && error.stack) console.error(error);
  if (failures < 2 && view) return; // one answer that is lost is not worth a word
  say($("trouble"), away
    ? "The harness gives no answer. It may have been stopped; this page goes on asking."
    : `The harness answered: ${error.message}`);
}

function setPulse(text, tone) {
  say($("pulse-text"), text);
  mark($("pulse"), "data-tone", tone);
}

// One request for a person. The button keeps its focus meanwhile, so it isn't disabled.
async function act(button, what, requests) {
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  try {
    for (const [path, body] of requests) {
      const told = await ask("POST", path, body, ACTION_PATIENCE_MS);
      if (told.held_by && path.endsWith("/heal")) log(`It stays cut while ${told.held_by} is isolated.`);
    }
  } catch (error) {
    log(`${what} did not work: ${error.message}.`, "bad");
  }
  button.removeAttribute("aria-busy");
  poll();
}

// ---- What happened

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function log(text, tone = "") {
  const line = make("li", { "data-tone": tone }, make("time", {}, clock.format(new Date())), ` ${text}`);
  $("log").prepend(line);
  while ($("log").children.length > LOG_LINES) $("log").lastChild.remove();
}

// ---- Regions

const regionCards = new Map();
const regionFields = [
  ["Only here", "onlyHere", (region) => formatCount(region.onlyHere), "Writes that would be lost with this region now"],
  ["Waiting", "pending", (region) => formatCount(region.pending), "Writes that some other region does not have yet"],
  ["Leads", "leads", (region) => (region.member ? `${region.leads} of ${region.member}` : "–"),
    "Partitions of strong tables that it leads, of those it is a member of"],
  ["Overruled", "conflicts", (region) => formatCount(region.conflicts), "Writes it saw lose to later ones"],
  ["Clock", "clock", (region) => clockText(region.clock_offset_ms), "How far its clock has been moved"],
];

function clockText(offset) {
  if (offset === null || offset === undefined) return "–";
  return offset === 0 ? "±0" : `${offset > 0 ? "+" : "−"}${formatMs(Math.abs(offset))}`;
}

function regionAction(card, at, name, choose) {
  const button = make("button", { type: "button" });
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") === "true") return;
    const region = view.regions.get(name);
    const verb = choose(region).toLowerCase();
    act(button, `To ${verb} ${name}`, [[regionPath(name, verb)]]);
  });
  card.buttons[at] = { button, choose };
  return button;
}

function makeRegion(region) {
  const name = region.name;
  const card = { fields: {}, buttons: [] };
  const heading = `region-${name}`;
  card.state = make("p", { class: "state" });
  card.address = make("p", { class: "soft address" });
  const list = make("dl", { class: "facts" });
  for (const [label, field, , hint] of regionFields) {
    const value = make("dd");
    card.fields[field] = value;
    list.append(make("div", { title: hint }, make("dt", {}, label), value));
  }
  card.node = make("article", { class: "panel card", "aria-labelledby": heading },
    make("h3", { id: heading }, name), card.state, card.address, list,
    make("div", { class: "buttons" },
      regionAction(card, 0, name, (now) => (now.state === "dead" ? "Restart" : "Kill")),
      regionAction(card, 1, name, (now) => (now.state === "paused" ? "Resume" : "Pause")),
      regionAction(card, 2, name, (now) => (now.isolated ? "Rejoin" : "Isolate"))));
  regionCards.set(name, card);
  $("regions").append(card.node);
}

function showRegion(region) {
  if (!regionCards.has(region.name)) makeRegion(region);
  const card = regionCards.get(region.name);
  mark(card.node, "data-tone", region.tone);
  say(card.state, region.condition);
  const said = region.stale ? "figures as last heard" : region.pid ? `process ${region.pid}` : "no process";
  say(card.address, `${region.kind === "witness" ? "witness · " : ""}${region.address} · ${said}`);
  for (const [, field, text] of regionFields) say(card.fields[field], text(region));
  mark(card.fields.onlyHere, "data-tone", region.onlyHere > 0 ? (region.tone === "bad" ? "bad" : "warn") : "");
  mark(card.fields.clock, "data-tone", region.clock_offset_ms ? "warn" : "");
  for (const { button, choose } of card.buttons) {
    const verb = choose(region);
    say(button, verb);
    mark(button, "aria-label", `${verb} ${region.name}`);
  }
  const stopped = region.state === "dead" || region.state === "starting";
  mark(card.buttons[1].button, "aria-disabled", stopped ? "true" : "false");
}

// ---- Links

const linkRows = new Map();

function cell(label, attributes, ...children) {
  return make("td", { role: "cell", "data-label": label, ...attributes }, ...children);
}

function makeLink(link) {
  const key = linkKey(link);
  const row = {
    state: cell("State", { class: "state" }), lag: cell("Lag", { class: "number" }),
    waiting: cell("Waiting", { class: "number" }),
    delay: make("input", { type: "number", min: 0, max: 3600000, step: "any", inputmode: "numeric", value: 0,
      "aria-label": `Delay from ${key}, in milliseconds` }),
    set: make("button", { type: "submit", "aria-label": `Set the delay from ${key}` }, "Set"),
    cut: make("button", { type: "button" }),
  };
  const form = make("form", { novalidate: "" }, row.delay, make("span", { class: "soft" }, "ms"), row.set);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = Number(row.delay.value);
    if (!Number.isInteger(wanted) || wanted < 0 || wanted > 3600000) {
      log(`A delay is a whole number of milliseconds from 0 to 3600000, not “${row.delay.value}”.`, "bad");
      return;
    }
    row.typed = false;
    act(row.set, `To delay ${key}`, [[linkPath(link, "delay"), { delay_ms: wanted }]]);
  });
  row.delay.addEventListener("input", () => { row.typed = true; });
  row.cut.addEventListener("click", () => {
    const verb = view.links.get(key).state === "cut" ? "heal" : "cut";
    act(row.cut, `To ${verb} ${key}`, [[linkPath(link, verb)]]);
  });
  row.node = make("tr", { role: "row" },
    make("th", { scope: "row", role: "rowheader" }, link.from, make("span", { class: "soft" }, " → "), link.to),
    row.state, row.lag, row.waiting, cell("Delay", {}, form), cell("Change", {}, row.cut));
  linkRows.set(key, row);
  $("links").tBodies[0].append(row.node);
}

function showLink(link) {
  if (!linkRows.has(link.key)) makeLink(link);
  const row = linkRows.get(link.key);
  mark(row.node, "data-tone", link.kind === "cut" ? "bad" : link.kind === "late" ? "warn" : "good");
  say(row.state, link.condition);
  say(row.lag, formatMs(link.lag));
  say(row.waiting, formatCount(link.pending));
  if (!row.typed && document.activeElement !== row.delay) row.delay.value = link.delay_ms;
  const verb = link.state === "cut" ? "Heal" : "Cut";
  say(row.cut, verb);
  mark(row.cut, "aria-label", `${verb} ${link.key}`);
}

// ---- Tables, faults, figures

function showTables(tables) {
  const body = $("tables").tBodies[0];
  const shown = tables.slice(0, TABLES_SHOWN);
  while (body.rows.length > shown.length) body.deleteRow(-1);
  while (body.rows.length < shown.length)
    body.append(make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader" }), cell("Mode"),
      cell("Regions"), cell("Items", { class: "number" }), cell("Led by")));
  shown.forEach((table, i) => {
    const leaders = table.regions.map((region) => `${region} ${table.leaders.get(region) ?? 0}`); // room for each
    const texts = [table.name, table.mode ?? "one region", table.regions.join(", "), formatCount(table.items),
      table.mode === "strong" ? leaders.join(", ") : "–"];
    texts.forEach((text, j) => say(body.rows[i].cells[j], text));
  });
  $("tables").hidden = shown.length === 0;
  say($("tables-note"), tables.length === 0 ? "No region has a table yet." :
    tables.length > shown.length ? `And ${plural(tables.length - shown.length, "more", "more")}.` : "");
}

function showFaults({ faults }) {
  const list = $("faults");
  while (list.children.length > Math.max(1, faults.length)) list.lastChild.remove();
  while (list.children.length < Math.max(1, faults.length)) list.append(make("li"));
  mark(list.children[0], "class", faults.length ? "" : "soft");
  if (faults.length === 0) say(list.children[0], "No fault is running.");
  faults.forEach((fault, i) => {
    const since = fault.since_ms ? ` for ${formatMs(Math.max(0, Date.now() - fault.since_ms))}` : "";
    say(list.children[i], `${fault.verb} ${fault.target ?? ""}${since}${fault.evidence ? `: ${fault.evidence}` : ""}`);
  });
}

function showFigures() {
  for (const [name, figure] of Object.entries(figuresOf(view))) {
    say($(`figure-${name}`), figure.text);
    mark($(`figure-${name}`), "data-tone", figure.tone);
    say($(`note-${name}`), figure.note);
  }
}

// ---- Conflicts

let conflictsShown = "";
let conflictsAt = -Infinity;

// The ledgers are read only when one of them has grown.
async function showConflicts() {
  const wanted = [...view.regions.values()].map((region) => `${region.heard} ${region.conflicts}`).join();
  if (wanted === conflictsShown || performance.now() - conflictsAt < CONFLICTS_EVERY_MS) return;
  conflictsAt = performance.now();
  const rows = await ask("GET", `/v1/conflicts?newest=${CONFLICTS}`);
  conflictsShown = wanted;
  const known = new Map([...$("conflicts").children].map((node) => [node.dataset.id, node]));
  $("conflicts").replaceChildren(...rows.map(conflictOf).reverse().map((loss) =>
    known.get(`${loss.id} ${loss.winner.text}`) ?? makeConflict(loss)));
  say($("conflicts-note"), rows.length === 0
    ? "None. When two regions write one key before they hear of each other, the later write stays, and the other " +
      "is listed here."
    : rows.length === CONFLICTS ? `The latest ${CONFLICTS}. “tidemark conflicts” lists all.` : "");
}

function makeConflict(loss) {
  const side = (word, { region, text }) => make("p", { class: word },
    make("b", {}, word), ` ${region} `, make("code", {}, text));
  return make("li", { "data-id": `${loss.id} ${loss.winner.text}` },
    make("p", {}, make("time", {}, clock.format(new Date(loss.at))), ` ${loss.table} `, make("code", {}, loss.key),
      make("span", { class: "soft" }, ` ${loss.kind}`)),
    side("kept", loss.winner), side("lost", loss.loser));
}

// ---- Runs that have ended

let runsShown = null;
let runsAt = -Infinity;
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

async function showRuns() {
  if (performance.now() - runsAt < RUNS_EVERY_MS) return;
  runsAt = performance.now();
  const rows = await ask("GET", "/v1/runs");
  const told = JSON.stringify(rows);
  if (told === runsShown) return;
  runsShown = told;
  const runs = rows.map(runOf);
  $("runs").replaceChildren(...runs.map(makeRun));
  say($("runs-note"), runs.length ? "" : "None yet. What “tidemark chaos run” leaves in the directory runs, " +
    "where this cluster was started, is listed here.");
  $("last-run").replaceChildren(...(runs.length ? ["The last run: ", reportLink(runs[0]), `, ${runs[0].word}.`]
    : ["No run has ended here."]));
}

function reportLink(run) {
  return make("a", { href: run.report, target: "_blank", rel: "noopener",
    "aria-label": `${run.name}, report of ${day.format(new Date(run.at))}` }, run.name);
}

function makeRun(run) {
  return make("li", {},
    make("p", {}, make("span", { class: "result", "data-tone": run.tone }, run.word), " ", reportLink(run), " ",
      make("time", { datetime: new Date(run.at).toISOString() }, day.format(new Date(run.at)))),
    make("p", { class: "soft" }, run.sentence));
}

// ---- All of it

const map = new ClusterMap($("map"));

function show(next) {
  const before = view;
  view = next;
  for (const region of view.regions.values()) showRegion(region);
  for (const link of view.links.values()) showLink(link);
  $("main").hidden = false;
  say($("trouble"), "");
  setPulse("Live", "good");
  showTables(view.tables);
  showFaults(view);
  showFigures();
  map.show(view);
  if (before) for (const change of changesBetween(before, view)) log(change);
  else log(`This page began to watch ${plural(view.regions.size, "region")}.`);
}

// What is undone: everything that this page can do. Regions first, so that they hear what the links then bring.
$("heal-all").addEventListener("click", () => {
  if (!view) return;
  const requests = [];
  for (const region of view.regions.values()) {
    if (region.state === "dead") requests.push([regionPath(region.name, "restart")]);
    if (region.state === "paused") requests.push([regionPath(region.name, "resume")]);
    if (region.isolated) requests.push([regionPath(region.name, "rejoin")]);
  }
  for (const link of view.links.values()) {
    if (link.state === "cut") requests.push([linkPath(link, "heal")]);
    if (link.delay_ms > 0) requests.push([linkPath(link, "delay"), { delay_ms: 0 }]);
  }
  if (requests.length === 0) log("There is nothing to heal.");
  act($("heal-all"), "To heal everything", requests);
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) poll();
});

poll();
