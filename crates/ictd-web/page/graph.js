// The process as a graph: states at their features, arrows for transitions, the estimate inside and the exact value around.

import { Picture, TEXT, diverging, inkOn, most, num } from "ictd/draw";
import { ask, reads } from "ictd/explain";

/** Radius of a state, pixels. */
const RADIUS = 17;

/**
 * A graph. `explain(s)` says what a state is, `choose(s)` is called on a click or Enter, `move(s, x)` while it is dragged or pushed with
 * arrow keys, `remove(s)` on Delete.
 */
export class Graph {
  constructor({ title, explain, enter, choose, move, remove, height = 300 }) {
    Object.assign(this, { choose, move, remove, height });
    this.picture = new Picture({ title, className: "graph", numbers: () => this.table() });
    this.root = this.picture.root;
    this.back = this.picture.layer("axes");
    this.ways = this.picture.layer("ways");
    this.states = this.picture.layer("states");
    this.texts = this.picture.layer("texts");
    const place = (element) => (element.dataset.state === undefined ? null : { state: Number(element.dataset.state) });
    reads(this.picture, {
      enter,
      at: place,
      explain: ({ state }) => (this.data.process.rewards[state] === undefined ? null : explain(state)),
    });
    this.listen(place, enter, explain);
  }

  table() {
    const { process, names, estimates } = this.data;
    return [
      ["state", "reward", "estimate", "exact", ...process.features[0].map((_, k) => `x${k + 1}`), ...names.map((name) => `to ${name}`)],
      ...process.P.map((row, s) => [names[s], process.rewards[s], estimates[s] ?? "", process.values[s], ...process.features[s], ...row]),
    ];
  }

  listen(place, enter, explain) {
    const { svg } = this.picture;
    let held = null;
    const end = () => {
      if (held && !held.moved) this.choose(held.state);
      held = null;
      this.frozen = null;
      svg.classList.remove("held");
    };
    svg.addEventListener("pointerdown", (event) => {
      const found = place(event.target);
      if (!found || event.button !== 0) return;
      held = { ...found, x: event.clientX, y: event.clientY, from: this.data.process.features[found.state] };
      this.frozen = this.reach;
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!held || held.from.length !== 2) return;
      const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
      if (!held.moved && Math.hypot(dx, dy) < 4) return;
      held.moved = true;
      svg.classList.add("held");
      const to = [held.from[0] + dx / this.unit, held.from[1] - dy / this.unit];
      this.move(
        held.state,
        to.map((x) => Math.round(Math.max(-this.reach, Math.min(this.reach, x)) * 100) / 100),
      );
    });
    svg.addEventListener("pointerup", end);
    svg.addEventListener("pointercancel", end);
    svg.addEventListener("keydown", (event) => {
      const found = place(event.target);
      if (!found) return;
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      const size = event.shiftKey ? 0.01 : 0.05;
      const x = this.data.process.features[found.state];
      if (step && x.length === 2)
        this.move(
          found.state,
          x.map((old, k) => Math.round((old + step[k] * size) * 100) / 100),
        );
      else if (event.key === "Enter" || event.key === " ") this.choose(found.state);
      else if (event.key === "Delete") this.remove(found.state);
      else return;
      event.preventDefault();
    });
    svg.addEventListener("focusin", (event) => {
      const found = place(event.target);
      if (!found) return;
      enter(found);
      ask(() => (this.data.process.rewards[found.state] === undefined ? null : explain(found.state)));
    });
    svg.addEventListener("focusout", () => {
      enter(null);
      ask(null);
    });
  }

  /** States are where their features are; with other than two features they stand in a circle. */
  place(process, width) {
    const flat = process.features[0].length === 2;
    const at = flat
      ? process.features
      : process.features.map((_, s) => [Math.sin((2 * Math.PI * s) / process.P.length), Math.cos((2 * Math.PI * s) / process.P.length)]);
    this.reach = this.frozen ?? Math.max(flat ? 0.5 : 1, most(at) * 1.02);
    const middle = [width / 2, this.height / 2];
    // Beside a state there is room for its reward, above and below it less.
    this.unit = Math.min(width / 2 - RADIUS - 64, this.height / 2 - RADIUS - TEXT - 10) / this.reach;
    return { flat, middle, points: at.map(([x, y]) => [middle[0] + x * this.unit, middle[1] - y * this.unit]) };
  }

  /** Draws `{process, names, estimates, limit, chosen, marked}`. */
  draw(data) {
    const { picture, height } = this;
    if (picture.width === 0) return;
    this.data = data;
    const width = picture.width;
    const { flat, middle, points } = this.place(data.process, width);
    picture.size(width, height);
    picture.scale(data.limit);
    this.back.begin();
    if (flat) {
      this.back.put("x", "line", { class: "grid", x1: 4, x2: width - 4, y1: middle[1], y2: middle[1] });
      this.back.put("y", "line", { class: "grid", x1: middle[0], x2: middle[0], y1: 4, y2: height - 4 });
      this.back.put("xn", "text", { class: "name end", x: width - 4, y: middle[1] + TEXT + 3 }, "x₁");
      this.back.put("yn", "text", { class: "name end", x: middle[0] - 6, y: TEXT + 1 }, "x₂");
    }
    this.back.end();
    this.arrows(data, points, middle);
    this.nodes(data, points, middle);
  }

  arrows({ process, marked }, points, middle) {
    this.ways.begin();
    process.P.forEach((row, s) => {
      row.forEach((p, u) => {
        if (!(p > 0)) return;
        const { path, head } = s === u ? around(points[s], middle) : between(points[s], points[u], process.P[u][s] > 0);
        const state = `way ${marked !== undefined && marked !== s ? "faint" : ""}`;
        this.ways.put(`${s},${u}`, "path", { class: state, d: path, "stroke-width": 1 + 2.2 * p });
        this.ways.put(`h${s},${u}`, "path", { class: `head ${state}`, d: head });
      });
    });
    this.ways.end();
  }

  nodes({ process, names, estimates, limit, chosen, marked }, points, middle) {
    this.states.begin();
    this.texts.begin();
    const taken = [];
    points.forEach(([x, y], s) => {
      const estimate = estimates[s];
      const exact = process.values[s];
      const state = s === chosen || s === marked ? "strong" : "";
      this.states.put(`b${s}`, "circle", { class: `edge ${state}`, cx: x, cy: y, r: RADIUS + 2.5 });
      this.states.put(`r${s}`, "circle", {
        class: "ring",
        cx: x,
        cy: y,
        r: RADIUS - 1,
        stroke: diverging(exact, limit),
        "data-exact": exact,
      });
      this.states.put(s, "circle", {
        class: "state moves",
        cx: x,
        cy: y,
        r: RADIUS - 5,
        fill: estimate === null ? diverging(0, 1) : diverging(estimate, limit),
        tabindex: 0,
        role: "button",
        "data-state": s,
        "data-value": estimate,
        "data-reward": process.rewards[s],
        "aria-label": `State ${names[s]}: reward ${num(process.rewards[s])}, estimate ${num(estimate)}, exact value ${num(exact)}. Enter edits it, ${process.features[s].length === 2 ? "arrow keys move it, " : ""}Delete removes it.`,
      });
      this.states.put(`h${s}`, "circle", { class: "hit grab", cx: x, cy: y, r: RADIUS + 4, "data-state": s });
      this.texts.put(s, "text", { class: "cell strong", x, y: y + 4.5, style: `fill: ${inkOn(estimate ?? 0, limit)}` }, names[s]);
      const [dx, dy] = outward([x, y], middle);
      const anchor = Math.abs(dx) < 0.4 ? "middle" : dx < 0 ? "end" : "start";
      const at = { x: x + dx * (RADIUS + 8), y: y + dy * (RADIUS + 13) + 4.5 };
      const text = `r ${num(process.rewards[s], 2)}`;
      const size = 8.6 * text.length;
      const left = at.x - { start: 0, middle: size / 2, end: size }[anchor];
      // Rewards that would cover each other are left out; pointing at the state still tells them.
      if (taken.some(([from, to, line]) => left < to && from < left + size && Math.abs(line - at.y) < TEXT)) return;
      taken.push([left, left + size, at.y]);
      this.texts.put(`t${s}`, "text", { class: "name halo", ...at, "text-anchor": anchor }, text);
    });
    this.states.end();
    this.texts.end();
  }
}

/** The direction away from the middle; straight down where there is none. */
function outward([x, y], middle) {
  const size = Math.hypot(x - middle[0], y - middle[1]);
  return size < 12 ? [0, 1] : [(x - middle[0]) / size, (y - middle[1]) / size];
}

function tip([x, y], [dx, dy]) {
  const size = 6;
  const back = [x - dx * size, y - dy * size];
  const side = [-dy * size * 0.55, dx * size * 0.55];
  return `M${x.toFixed(1)} ${y.toFixed(1)}L${(back[0] + side[0]).toFixed(1)} ${(back[1] + side[1]).toFixed(1)}L${(back[0] - side[0]).toFixed(1)} ${(back[1] - side[1]).toFixed(1)}Z`;
}

/** An arrow from one state to another, bent where there is one back. */
function between(a, b, both) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const length = Math.hypot(dx, dy) || 1;
  const bend = both ? 0.16 : 0.04;
  const control = [(a[0] + b[0]) / 2 - dy * bend, (a[1] + b[1]) / 2 + dx * bend];
  const toward = (from, to) => {
    const size = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
    return [(to[0] - from[0]) / size, (to[1] - from[1]) / size];
  };
  const out = toward(a, control);
  const into = toward(control, b);
  const gap = Math.min(RADIUS + 4, length / 2);
  const start = [a[0] + out[0] * gap, a[1] + out[1] * gap];
  const end = [b[0] - into[0] * gap, b[1] - into[1] * gap];
  const stop = [end[0] - into[0] * 4, end[1] - into[1] * 4];
  return {
    path: `M${start.map((v) => v.toFixed(1))}Q${control.map((v) => v.toFixed(1))} ${stop.map((v) => v.toFixed(1))}`,
    head: tip(end, into),
  };
}

/** A loop of a state to itself, away from the middle and beside the reward that stands there. */
function around([x, y], middle) {
  const angle = Math.atan2(y - middle[1], x - middle[0]) + 1.1;
  const at = (turn, far) => [x + Math.cos(angle + turn) * far, y + Math.sin(angle + turn) * far];
  const [start, end, c1, c2] = [at(-0.5, RADIUS + 3), at(0.5, RADIUS + 3), at(-0.7, RADIUS + 26), at(0.7, RADIUS + 26)];
  const way = [end[0] - c2[0], end[1] - c2[1]];
  const size = Math.hypot(...way);
  return {
    path: `M${start.map((v) => v.toFixed(1))}C${c1.map((v) => v.toFixed(1))} ${c2.map((v) => v.toFixed(1))} ${end.map((v) => v.toFixed(1))}`,
    head: tip(
      end,
      way.map((v) => v / size),
    ),
  };
}
