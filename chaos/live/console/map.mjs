// SPDX-License-Identifier: Apache-2.0
// The map: regions on a circle, a bent arrow for each direction of each pair. It is drawn anew when the set of
// regions or the room for it changes, and else only told of new states. To a screen reader it is one image with a
// sentence; the table of links says the rest.

import { formatCount, formatMs } from "./model.mjs";

const SVG = "http://www.w3.org/2000/svg";
const NODE = 27;
const LABELS_MAX = 12; // arrows beyond which only those that tell something stand out

function shape(parent, name, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

function put(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function places(count, width, height) {
  const [x, y] = [width / 2, height / 2];
  if (count === 1) return [{ x, y }];
  const [rx, ry] = [Math.min(width / 2 - 62, height * 0.72), height / 2 - 58];
  const first = count === 2 ? Math.PI : -Math.PI / 2;
  // An odd ring reaches further up than down: moved, so that it sits in the middle.
  const drop = count % 2 ? (ry * (1 - Math.cos(Math.PI / count))) / 2 : 0;
  return Array.from({ length: count }, (_, i) => {
    const angle = first + (2 * Math.PI * i) / count;
    return { x: x + rx * Math.cos(angle), y: y + ry * Math.sin(angle) + drop };
  });
}

// From rim to rim along a curve that leans to the left of its direction, so that the two ways never meet.
function bend(a, b) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = Math.hypot(dx, dy);
  const lean = Math.min(30, length / 6);
  const control = { x: (a.x + b.x) / 2 + (dy / length) * lean, y: (a.y + b.y) / 2 - (dx / length) * lean };
  const rim = (from, gap) => {
    const [cx, cy] = [control.x - from.x, control.y - from.y];
    const far = Math.hypot(cx, cy);
    return { x: from.x + (cx / far) * (NODE + gap), y: from.y + (cy / far) * (NODE + gap) };
  };
  const [start, end] = [rim(a, 5), rim(b, 9)];
  return {
    path: `M${start.x.toFixed(1)} ${start.y.toFixed(1)}Q${control.x.toFixed(1)} ${control.y.toFixed(1)} ` +
      `${end.x.toFixed(1)} ${end.y.toFixed(1)}`,
    // Nearer to where it begins, so that the labels of the two ways, and of arrows that cross, keep apart.
    label: {
      x: 0.36 * start.x + 0.48 * control.x + 0.16 * end.x,
      y: 0.36 * start.y + 0.48 * control.y + 0.16 * end.y,
    },
  };
}

// In a crowd, what a region's own mark tells already is left out, and figures are left to the table.
function linkLabel(link, crowd) {
  if (link.kind === "cut" && crowd) return link.held ? "" : "cut";
  if (link.kind === "cut") return link.pending ? `cut · ${formatCount(link.pending)} waiting` : "cut";
  if (link.idle) return "";
  const parts = [];
  if (link.lag !== null) parts.push(formatMs(link.lag));
  if (link.delay_ms > 0) parts.push(`delay ${formatMs(link.delay_ms)}`);
  if (crowd) return link.kind === "up" ? "" : parts.at(-1) ?? "";
  return parts.join(" · ");
}

function regionNote(region) {
  if (region.state === "running" && !region.isolated && region.heard)
    return region.leads ? `leads ${formatCount(region.leads)}` : region.kind === "witness" ? "witness" : "";
  return region.condition;
}

export class ClusterMap {
  constructor(holder) {
    this.holder = holder;
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("role", "img");
    holder.append(this.svg);
    this.shape = "";
    new ResizeObserver(() => this.view && this.show(this.view)).observe(holder);
  }

  draw(view, width, height) {
    this.svg.replaceChildren();
    put(this.svg, "viewBox", `0 0 ${width} ${height}`);
    const defs = shape(this.svg, "defs");
    for (const kind of ["up", "late", "cut"]) {
      const marker = shape(defs, "marker", { id: `tip-${kind}`, viewBox: "0 0 8 8", refX: 6, refY: 4,
        markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" });
      shape(marker, "path", { d: "M0 0.5L7.5 4L0 7.5z", class: `tip ${kind}` });
    }
    const names = [...view.regions.keys()];
    const at = places(names.length, width, height);
    this.links = new Map();
    this.labels = new Map();
    this.regions = new Map();
    for (const [key, link] of view.links) {
      const curve = bend(at[names.indexOf(link.from)], at[names.indexOf(link.to)]);
      this.links.set(key, shape(this.svg, "path", { d: curve.path, fill: "none" }));
      this.labels.set(key, curve.label);
    }
    for (const [key, place] of this.labels)
      this.labels.set(key, shape(this.svg, "text", { x: place.x, y: place.y, dy: "0.35em", class: "lag" }));
    names.forEach((name, i) => this.regions.set(name, this.drawRegion(view.regions.get(name), at[i], height)));
  }

  drawRegion(region, { x, y }, height) {
    const group = shape(this.svg, "g", { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
    const witness = region.kind === "witness";
    const halo = shape(group, "circle", { r: NODE + 6, class: "halo" });
    if (witness) shape(group, "rect", { x: -22, y: -22, width: 44, height: 44, rx: 10, class: "body" });
    else shape(group, "circle", { r: NODE, class: "body" });
    const inside = shape(group, "text", { dy: "0.35em", class: "inside" });
    const above = y < height / 2 - 20;
    const name = shape(group, "text", { y: above ? -NODE - 20 : NODE + 18, class: "name" });
    const note = shape(group, "text", { y: above ? -NODE - 6 : NODE + 33, class: "doing" });
    say(name, region.name);
    return { group, halo, inside, note };
  }

  show(view) {
    this.view = view;
    const [width, height] = [this.holder.clientWidth, this.holder.clientHeight];
    if (!width || !height) return;
    const wanted = [width, height, ...[...view.regions.values()].map((each) => each.name + each.kind)].join();
    if (wanted !== this.shape) this.draw(view, width, height);
    this.shape = wanted;
    const crowd = view.links.size > LABELS_MAX;
    put(this.svg, "class", crowd ? "crowd" : "");
    for (const [key, link] of view.links) {
      const [line, label] = [this.links.get(key), this.labels.get(key)];
      put(line, "class", `link ${link.kind}${link.idle ? " idle" : ""}`);
      put(line, "marker-end", `url(#tip-${link.kind})`);
      put(label, "class", `lag ${link.kind}`);
      say(label, linkLabel(link, crowd));
    }
    for (const [name, region] of view.regions) {
      const node = this.regions.get(name);
      put(node.group, "class", `region ${region.tone} ${region.state}${region.isolated ? " isolated" : ""}`);
      say(node.inside, region.kind === "witness" ? "W" : shortCount(region.onlyHere));
      say(node.note, regionNote(region));
    }
    put(this.svg, "aria-label", sentence(view));
  }
}

function shortCount(count) {
  if (count === undefined || count === null) return "–";
  if (count < 10000) return String(count);
  return count < 1e6 ? `${Math.floor(count / 1000)}k` : `${Math.floor(count / 1e6)}M`;
}

function sentence(view) {
  const regions = [...view.regions.values()].map((region) => `${region.name} ${region.condition}`).join(", ");
  const cut = [...view.links.values()].filter((link) => link.kind === "cut").map((link) => link.key);
  return `Map of the cluster: ${regions}. ${cut.length ? `Cut: ${cut.join(", ")}.` : "No link is cut."}`;
}
