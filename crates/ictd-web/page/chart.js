// Line charts: series over an axis, linear or logarithmic, with rules, bands and names at the right.

import { Picture, TEXT, svg } from "ictd/draw";
import { reads } from "ictd/explain";

/** Ticks at round numbers, about `count` of them. */
export function ticks(least, most, count = 5) {
  const raw = (most - least) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw * 0.999) ?? power;
  const list = [];
  for (let k = Math.ceil(least / step - 1e-9); k * step <= most + step * 1e-9; k++) list.push(Number((k * step).toPrecision(12)));
  return list;
}

/** Ticks at powers of ten, at most about `count` of them. */
function powers(least, most, count = 6) {
  const from = Math.ceil(Math.log10(least) - 1e-9);
  const to = Math.floor(Math.log10(most) + 1e-9);
  const step = Math.max(1, Math.ceil((to - from) / count));
  const list = [];
  for (let k = from; k <= to; k += step) list.push(10 ** k);
  return list;
}

/** The text of a tick. */
export const tick = (value) => (Math.abs(value) >= 1e4 ? value.toExponential().replace("+", "") : String(value)).replaceAll("-", "−");

const exponent = (value) => `1e${Math.round(Math.log10(value))}`.replace("-", "−");

/**
 * Names at the right must not cover each other: moves places apart, keeping their order, within what is drawn.
 */
function spread(places, gap, least, most) {
  const order = places.map((at, index) => ({ at, index })).sort((a, b) => a.at - b.at);
  for (let k = 0; k < order.length; k++) order[k].at = Math.max(order[k].at, k === 0 ? least : order[k - 1].at + gap);
  for (let k = order.length - 1; k >= 0; k--) order[k].at = Math.min(order[k].at, k === order.length - 1 ? most : order[k + 1].at - gap);
  const result = [];
  for (const { at, index } of order) result[index] = at;
  return result;
}

let charts = 0;

/** A line chart. `explain({series, index})` says what a point is; `onrule(x)`, where given, is called while the rule is dragged. */
export class Chart {
  constructor({ title, explain = null, onrule = null, enter, className = "", left = 46, right = 12, height = 220 }) {
    Object.assign(this, { explain, onrule, left, right, height });
    this.picture = new Picture({ title, className: `chart ${className}`, numbers: () => this.table() });
    this.root = this.picture.root;
    this.back = this.picture.layer("axes");
    this.bands = this.picture.layer("bands");
    this.lines = this.picture.layer("lines");
    this.dots = this.picture.layer("dots");
    this.front = this.picture.layer("front");
    this.clip();
    if (explain) {
      reads(this.picture, {
        enter,
        at: (element, event) => this.nearest(event),
        move: (place, down, right) => {
          const series = Math.max(0, Math.min(this.data.series.length - 1, (place?.series ?? 0) + down));
          return { series, index: Math.max(0, Math.min(this.data.series[series].points.length - 1, (place?.index ?? 0) + right)) };
        },
        explain: (place) => (this.data.series[place.series]?.points[place.index] ? explain(place) : null),
      });
    }
    if (onrule) this.drag();
  }

  /** What leaves the axes is cut off. */
  clip() {
    const id = `clip${charts++}`;
    const cut = this.picture.svg.appendChild(svg("clipPath", { id }));
    this.window = cut.appendChild(svg("rect"));
    for (const { group } of [this.bands, this.lines, this.dots]) group.setAttribute("clip-path", `url(#${id})`);
  }

  table() {
    const xs = [...new Set(this.data.series.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
    const series = this.data.series.filter(({ points }) => points.length > 0);
    const columns = series.flatMap(({ name, key, points, band }) => {
      const middle = [name ?? key, new Map(points)];
      if (!band?.length) return [middle];
      const edge = (word, k) => [`${name ?? key} ${word}`, new Map(band.map((row) => [row[0], row[k]]))];
      return [middle, edge("least", 1), edge("largest", 2)];
    });
    const levels = this.data.levels ?? [];
    return [
      [this.data.x.label, ...columns.map(([name]) => name), ...levels.map(({ key, kind }) => `${key} ${kind}`)],
      ...xs.map((x) => [x, ...columns.map(([, at]) => at.get(x) ?? ""), ...levels.map(({ at }) => at)]),
    ];
  }

  /** The point next to the pointer, or null where none is near. */
  nearest(event) {
    if (!this.toX) return null;
    const box = this.picture.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let found = null;
    let near = 18;
    this.data.series.forEach(({ points }, series) => {
      points.forEach(([at, value], index) => {
        const far = Math.hypot(this.px(at) - x, this.py(value) - y);
        if (far < near) [near, found] = [far, { series, index }];
      });
    });
    return found;
  }

  drag() {
    const to = (event) => {
      const box = this.picture.svg.getBoundingClientRect();
      this.onrule(this.toX(event.clientX - box.left));
    };
    this.picture.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.toX) return;
      this.picture.svg.setPointerCapture(event.pointerId);
      to(event);
    });
    this.picture.svg.addEventListener("pointermove", (event) => {
      if (this.picture.svg.hasPointerCapture(event.pointerId)) to(event);
    });
  }

  /**
   * Draws `{x: {label, least, most, whole}, y: {label, least, most, log}, series, rule, names, levels}`: series are
   * `{key, name, points: [[x, y]], className, dots, band: [[x, low, high]]}`, levels horizontal lines `{key, kind, at, name, className}`.
   */
  draw(data) {
    const { picture, right, height } = this;
    if (picture.width === 0) return;
    this.data = data;
    const left = this.margin(data.y);
    const width = Math.max(data.minimum ?? 280, picture.width);
    const bottom = height - TEXT * 2 - 12;
    const top = 10;
    const { x, y } = data;
    const low = y.log ? Math.log10(y.least) : y.least;
    const high = y.log ? Math.log10(y.most) : y.most;
    const px = (value) => left + ((value - x.least) / (x.most - x.least || 1)) * (width - left - right);
    const py = (value) => {
      const at = y.log ? Math.log10(Math.max(value, 1e-300)) : value;
      return Math.max(top - 40, Math.min(bottom + 40, bottom - ((at - low) / (high - low || 1)) * (bottom - top)));
    };
    this.toX = (at) => x.least + ((at - left) / (width - left - right)) * (x.most - x.least);
    Object.assign(this, { px, py });
    // Dots on the edge are left whole.
    for (const [name, value] of Object.entries({ x: left - 5, y: top - 5, width: width - left - right + 10, height: bottom - top + 10 }))
      this.window.setAttribute(name, value);
    picture.size(width, height);
    this.axes(data, { px, py, left, width, height, top, bottom });
    this.bands.begin();
    this.lines.begin();
    this.dots.begin();
    data.series.forEach((series) => {
      const points = series.points.filter(([, value]) => Number.isFinite(value) && (!y.log || value > 0));
      const path = points.map(([at, value], k) => `${k ? "L" : "M"}${px(at).toFixed(1)} ${py(value).toFixed(1)}`).join("");
      if (series.band?.length) {
        const over = series.band.map(([at, , up]) => `${px(at).toFixed(1)} ${py(up).toFixed(1)}`);
        const under = series.band.map(([at, down]) => `${px(at).toFixed(1)} ${py(down).toFixed(1)}`).reverse();
        this.bands.put(series.key, "path", { class: `band ${series.className ?? ""}`, d: `M${[...over, ...under].join("L")}Z` });
      }
      this.lines.put(series.key, "path", { class: `series ${series.className ?? ""}`, d: path });
      if (series.dots) {
        points.forEach(([at, value], k) => {
          this.dots.put(`${series.key},${k}`, "circle", {
            class: `dot ${series.className ?? ""}`,
            cx: px(at),
            cy: py(value),
            r: series.dots,
            "data-value": value,
            "data-layer": at,
            "data-name": series.key,
          });
        });
      }
    });
    this.bands.end();
    this.lines.end();
    this.dots.end();
    this.overlay(data, { px, py, left, width, top, bottom });
  }

  /** Room for the names of ticks: more where they are long. */
  margin(y) {
    const names = y.log ? [] : ticks(y.least, y.most, 4).map((value) => tick(value).length);
    return Math.max(this.left, 11 + 8.6 * Math.max(0, ...names));
  }

  axes({ x, y }, { px, py, left, width, height, top, bottom }) {
    const { back, right } = this;
    back.begin();
    const vertical = y.log ? powers(y.least, y.most) : ticks(y.least, y.most, 4);
    for (const value of vertical) {
      back.put(`y${value}`, "line", {
        class: value === 0 ? "grid zero" : "grid",
        x1: left,
        x2: width - right,
        y1: py(value),
        y2: py(value),
      });
      back.put(`ty${value}`, "text", { class: "name end", x: left - 6, y: py(value) + 4 }, y.log ? exponent(value) : tick(value));
    }
    for (const value of ticks(x.least, x.most, Math.max(2, Math.min(8, (width - left) / 60)))) {
      if (x.whole && !Number.isInteger(value)) continue;
      back.put(`tx${value}`, "text", { class: "name middle", x: px(value), y: bottom + TEXT + 5 }, tick(value));
    }
    back.put("axis", "line", { class: "axis", x1: left, x2: width - right, y1: bottom, y2: bottom });
    back.put("xlabel", "text", { class: "name middle soft", x: (left + width - right) / 2, y: height - 4 }, x.label);
    back.put("edge", "line", { class: "axis", x1: left, x2: left, y1: top, y2: bottom });
    back.end();
  }

  overlay({ levels = [], rule }, { px, py, left, width, top, bottom }) {
    const { front, right } = this;
    front.begin();
    const places = spread(
      levels.map(({ at }) => py(at)),
      TEXT + 1,
      top,
      bottom,
    );
    levels.forEach(({ key, at, name, className }, k) => {
      front.put(`level${key}`, "line", {
        class: `level ${className}`,
        x1: left,
        x2: width - right,
        y1: py(at),
        y2: py(at),
        "data-value": at,
      });
      if (name)
        front.put(`name${key}`, "text", { class: `name ${className.replace("faint", "")}`, x: width - right + 5, y: places[k] + 4 }, name);
    });
    if (rule !== undefined) {
      front.put("rule", "line", { class: "rule", x1: px(rule), x2: px(rule), y1: top, y2: bottom });
      front.put("grip", "circle", { class: "grip", cx: px(rule), cy: bottom, r: 6 });
    }
    front.end();
  }
}
