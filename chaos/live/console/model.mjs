// SPDX-License-Identifier: Apache-2.0
// From what /v1/console answers to what the page shows: figures only, no document. A region that gives no answer
// keeps the figures it gave last, marked `stale`, for they are what would be lost with it.

const regionKey = (region) => region.name;
export const linkKey = (link) => `${link.from} to ${link.to}`;

export function formatMs(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return ms > 0 ? "<1 ms" : "0 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  if (ms < 3600000) return `${Math.floor(ms / 60000)} min`;
  return `${Math.floor(ms / 3600000)} h`;
}

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });

export function formatCount(count) {
  return count === null || count === undefined ? "–" : (count < 1e5 ? whole : compact).format(count);
}

export function plural(count, one, many = `${one}s`) {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

// A log is sent in order, so what no peer has yet is what the peer that is furthest along still lacks.
function replicationOf(lines, name) {
  const tables = new Map();
  for (const line of lines) {
    if (line.from !== name) continue;
    const table = tables.get(line.table) ?? { least: Infinity, most: 0 };
    table.least = Math.min(table.least, line.pending);
    table.most = Math.max(table.most, line.pending);
    tables.set(line.table, table);
  }
  const figures = { onlyHere: 0, pending: 0 };
  for (const table of tables.values()) {
    figures.onlyHere += table.least;
    figures.pending += table.most;
  }
  return figures;
}

function leadsOf(groups, name) {
  let leads = 0;
  let member = 0;
  for (const group of groups) {
    if (group.region !== name) continue;
    member += 1;
    if (group.leads) leads += 1;
  }
  return { leads, member };
}

function regionOf(status, region, before) {
  const heard = region.conflicts !== null;
  const view = { ...region, heard, stale: false };
  if (heard) {
    if (region.kind === "region") Object.assign(view, replicationOf(status.replication, region.name));
    Object.assign(view, leadsOf(status.groups, region.name));
  } else if (before && before.onlyHere !== undefined) {
    const { onlyHere, pending, conflicts, clock_offset_ms } = before;
    Object.assign(view, { onlyHere, pending, conflicts, clock_offset_ms, leads: 0, member: 0, stale: true });
  }
  view.condition = region.isolated && region.state !== "dead" ? `${region.state}, isolated` : region.state;
  if (region.state === "running" && !heard) view.condition = "running, silent";
  const well = region.state === "running" && !region.isolated && heard;
  view.tone = region.state === "dead" ? "bad" : well ? "good" : "warn";
  return view;
}

function linkOf(status, link, regions) {
  const lines = status.replication.filter((line) => line.from === link.from && line.to === link.to);
  const ends = [regions.get(link.from), regions.get(link.to)];
  const view = { ...link, key: linkKey(link), pending: null, lag: null, held: null };
  if (lines.length > 0) {
    view.pending = lines.reduce((sum, line) => sum + line.pending, 0);
    view.oldest = Math.max(...lines.map((line) => (line.pending > 0 ? line.oldest_ms : 0)));
    const usual = Math.max(...lines.map((line) => line.lag_p50_ms));
    view.lag = view.pending > 0 ? Math.max(usual, view.oldest) : usual > 0 ? usual : null;
  }
  view.held = ends.find((end) => end.isolated)?.name ?? null;
  view.idle = ends.some((end) => end.state === "dead");
  view.kind = link.state === "cut" ? "cut" : link.delay_ms > 0 || view.oldest > 1000 ? "late" : "up";
  view.condition = view.held ? "isolated" : link.state;
  return view;
}

function tablesOf(status, regions) {
  const tables = new Map();
  for (const line of status.tables) {
    const table = tables.get(line.name) ?? { name: line.name, items: 0, leaders: new Map(), mode: null };
    const named = (line.replicas ?? []).map((replica) => replica.region);
    const members = new Set([...(table.regions ?? []), line.region, ...named]);
    table.regions = [...regions.keys()].filter((name) => members.has(name));
    table.items = Math.max(table.items, line.items);
    tables.set(line.name, table);
  }
  for (const group of status.groups) {
    const table = tables.get(group.table);
    if (!table) continue;
    table.mode = "strong";
    if (group.leads) table.leaders.set(group.region, (table.leaders.get(group.region) ?? 0) + 1);
  }
  for (const line of status.replication) {
    const table = tables.get(line.table);
    if (table && !table.mode) table.mode = "eventual";
  }
  return [...tables.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function viewOf(status, before) {
  const regions = new Map();
  for (const region of status.regions)
    regions.set(regionKey(region), regionOf(status, region, before?.regions.get(regionKey(region))));
  const links = new Map();
  for (const link of status.links) links.set(linkKey(link), linkOf(status, link, regions));
  return { regions, links, tables: tablesOf(status, regions), faults: status.faults };
}

export function figuresOf(view) {
  const serving = [...view.regions.values()].filter((region) => region.kind === "region");
  const up = serving.filter((region) => region.tone !== "bad" && region.state === "running" && region.heard);
  const risky = serving.filter((region) => region.onlyHere > 0);
  const behind = [...view.links.values()].filter((link) => link.lag !== null).sort((a, b) => b.lag - a.lag)[0];
  const cut = [...view.links.values()].filter((link) => link.kind === "cut").length;
  const only = risky.map((region) => region.name).join(", ");
  return {
    serving: { text: `${up.length} of ${serving.length}`, note: cut ? `${plural(cut, "link")} cut` : "all links up",
      tone: up.length < serving.length || cut ? "warn" : "" },
    risk: { text: formatCount(risky.reduce((sum, region) => sum + region.onlyHere, 0)),
      note: only ? `only in ${only}` : "no write waits for a second region",
      tone: risky.length ? "warn" : "" },
    lag: { text: formatMs(behind?.lag), note: behind ? behind.key : "nothing replicated yet",
      tone: behind?.kind === "late" || behind?.kind === "cut" ? "warn" : "" },
    conflicts: { text: formatCount(Math.max(0, ...serving.map((region) => region.conflicts ?? 0))),
      note: "by a later write elsewhere", tone: "" },
  };
}

const regionSays = {
  dead: (name) => `${name} is down. Restart brings it back.`,
  paused: (name) => `${name} is frozen. Resume lets it go on.`,
  running: (name) => `${name} is running.`,
  starting: (name) => `${name} is starting.`,
};

function linkChange(was, link) {
  if (was.state !== link.state)
    return link.state === "cut" ? `The link ${link.key} is cut.` : `The link ${link.key} is healed.`;
  if (was.delay_ms === link.delay_ms) return null;
  return `The link ${link.key} ${link.delay_ms ? `is delayed by ${link.delay_ms} ms` : "has no delay"}.`;
}

// What to tell of the way from one view to the next, in words.
export function changesBetween(before, after) {
  const told = [];
  const turned = new Set();
  for (const [name, region] of after.regions) {
    const was = before.regions.get(name);
    if (!was) continue;
    if (was.state !== region.state) told.push(regionSays[region.state]?.(name) ?? `${name} is ${region.state}.`);
    if (was.isolated !== region.isolated) {
      turned.add(name);
      told.push(region.isolated ? `${name} is isolated: its links are cut.` : `${name} has joined again.`);
    }
    if (was.heard && region.heard && was.leads !== region.leads)
      told.push(`${name} leads ${plural(region.leads, "partition")}.`);
    if (was.heard && region.heard && region.conflicts > was.conflicts)
      told.push(`${name} saw ${plural(region.conflicts - was.conflicts, "write")} overruled.`);
  }
  for (const [key, link] of after.links) {
    const was = before.links.get(key);
    const change = was && linkChange(was, link);
    if (change && !(was.state !== link.state && (turned.has(link.from) || turned.has(link.to)))) told.push(change);
  }
  for (const fault of after.faults)
    if (!before.faults.some((old) => old.id === fault.id)) told.push(`Fault: ${fault.verb} ${fault.target ?? ""}.`);
  for (const fault of before.faults)
    if (!after.faults.some((now) => now.id === fault.id)) told.push(`Fault over: ${fault.verb} ${fault.target ?? ""}.`);
  return told;
}

const results = {
  pass: ["pass", "good"], wrong: ["wrong", "bad"], slow: ["too slow", "warn"], harness: ["no result", "warn"],
  unknown: ["unknown", "warn"],
};

// A finished run; its sentence without the word that it begins with, which is told apart.
export function runOf(row) {
  const [word, tone] = results[row.result] ?? [row.result, "warn"];
  const colon = row.verdict.indexOf(": ");
  const sentence = colon > 0 && colon < 20 ? row.verdict.slice(colon + 2) : row.verdict;
  return { name: row.name, time: row.time, word, tone, sentence, at: row.at_ms, report: row.report };
}

// An attribute value as a person writes it: {"M": {"a": {"N": "1"}}} is {a: 1}.
function plainValue(value, depth) {
  const [type, held] = Object.entries(value ?? {})[0] ?? [];
  if (depth > 6) return "…";
  if (type === "N") return held;
  if (type === "S") return JSON.stringify(held);
  if (type === "NULL") return "null";
  if (type === "B") return `${held.length} base64`;
  if (type === "L") return `[${held.map((each) => plainValue(each, depth + 1)).join(", ")}]`;
  if (type === "M")
    return `{${Object.entries(held).map(([name, each]) => `${name}: ${plainValue(each, depth + 1)}`).join(", ")}}`;
  return Array.isArray(held) ? `{${held.join(", ")}}` : String(held);
}

const shorten = (text, max) => (text.length > max ? `${text.slice(0, max - 1)}…` : text);

export function plainItem(item, leaveOut = new Set()) {
  if (!item) return "deleted";
  const parts = Object.entries(item).filter(([name]) => !leaveOut.has(name))
    .map(([name, value]) => `${name}: ${shorten(plainValue(value, 0), 80)}`);
  return shorten(parts.join(", ") || "the same attributes", 240);
}

export function conflictOf(row) {
  const keys = Object.keys(row.key ?? {});
  const [won, lost] = [row.winner.item ?? {}, row.loser.item ?? {}];
  const same = Object.keys(won).filter((name) => JSON.stringify(won[name]) === JSON.stringify(lost[name]));
  const leaveOut = new Set([...keys, ...same]);
  return {
    id: `${row.table} ${JSON.stringify(row.key)} ${row.loser.version}`,
    at: row.detected_at_ms,
    table: row.table,
    key: row.key ? plainItem(row.key) : "a key of a table that is gone",
    kind: row.kind === "late" ? "arrived late" : "written at the same time",
    winner: { region: row.winner.region, text: plainItem(row.winner.item, leaveOut) },
    loser: { region: row.loser.region, text: plainItem(row.loser.item, leaveOut) },
  };
}
