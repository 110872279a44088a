// Values of states with their intervals, one line each.

import { Picture, TEXT, num, plain } from "ictd/draw";
import { reads } from "ictd/explain";
import { ticks } from "ictd/chart";

/** Height of a line, pixels. */
const LINE = 22;

const brief = (value, digits) =>
  typeof value === "number"
    ? num(value, digits)
        .replace(/(\.\d*?)0+$/, "$1")
        .replace(/\.$/, "")
    : String(value);

/** A state for a reader: features by name, or its label; without names where there is little room. */
export function stateName(state, narrow = false) {
  if (typeof state !== "object" || state === null) return String(state);
  if (narrow)
    return `(${Object.values(state)
      .map((value) => brief(value, 2))
      .join(", ")})`;
  return Object.entries(state)
    .map(([name, value]) => `${name} ${brief(value, 3)}`)
    .join(", ");
}

/** The picture. */
export class Estimates {
  constructor() {
    this.picture = new Picture({ title: "Values with intervals", className: "estimates", numbers: () => this.table() });
    this.root = this.picture.root;
    this.back = this.picture.layer("axes");
    this.front = this.picture.layer("values");
    this.data = { rows: [] };
    reads(this.picture, {
      at: (element) => (element.dataset.row === undefined ? null : Number(element.dataset.row)),
      move: (place, down, right) => Math.max(0, Math.min(this.data.rows.length - 1, (place ?? 0) + down + right)),
      explain: (place) => (this.data.rows[place] ? this.explain(this.data.rows[place]) : null),
    });
  }

  table() {
    const { all } = this.data;
    const parts = ({ state }) => (typeof state === "object" && state !== null ? Object.values(state) : [state]);
    const names = typeof all[0].state === "object" && all[0].state !== null ? Object.keys(all[0].state) : ["state"];
    return [
      [...names, "visits", "value", "low", "high"],
      ...all.map((row) => [...parts(row), row.visits, row.value, row.low, row.high]),
    ];
  }

  explain({ state, visits, value, low, high, extrapolated, exact }) {
    const lines = [`value ${num(value)}`, `95 % interval from ${num(low)} to ${num(high)}`];
    if (exact !== undefined) lines.push(`<span class="exact-text">exact value ${num(exact)}</span>`);
    return {
      title: plain(stateName(state)),
      lines,
      note: `${visits} visits in the log.${extrapolated ? " Like no state of the log: do not rely on it." : ""}`,
    };
  }

  /** Draws `{rows, all}`: rows are `{state, visits, value, low, high, extrapolated, exact}`. */
  draw(data) {
    const { picture, back, front } = this;
    if (picture.width === 0) return;
    this.data = data;
    const { rows } = data;
    const narrow = picture.width < 480;
    const left = Math.min(narrow ? 128 : 230, 12 + 7.4 * Math.max(...rows.map(({ state }) => stateName(state, narrow).length)));
    const right = 62;
    const width = Math.max(320, picture.width);
    const height = LINE * rows.length + 2 * TEXT + 18;
    const bottom = LINE * rows.length + 8;
    const numbers = rows.flatMap(({ value, low, high, exact }) => [value, low, high, exact]).filter(Number.isFinite);
    const pad = 0.04 * (Math.max(...numbers) - Math.min(...numbers)) || 1;
    const [least, most] = [Math.min(...numbers) - pad, Math.max(...numbers) + pad];
    const px = (value) => left + ((value - least) / (most - least)) * (width - left - right);
    picture.size(width, height);
    back.begin();
    for (const value of ticks(least, most, narrow ? 3 : 5)) {
      back.put(`x${value}`, "line", { class: value === 0 ? "grid zero" : "grid", x1: px(value), x2: px(value), y1: 4, y2: bottom });
      back.put(`t${value}`, "text", { class: "name middle", x: px(value), y: bottom + TEXT + 4 }, String(value).replace("-", "−"));
    }
    back.put("label", "text", { class: "name", x: left, y: height - 2 }, "value");
    back.end();
    front.begin();
    const room = Math.floor((left - 12) / 7.2);
    rows.forEach((row, k) => this.line(row, k, { px, left, width, room, narrow }));
    front.end();
    picture.summary(
      `Values of ${rows.length} states with 95 % intervals: ${rows
        .slice(0, 8)
        .map(({ state, value, low, high }) => `${stateName(state)} ${num(value)} (${num(low)} to ${num(high)})`)
        .join("; ")}`,
    );
  }

  line({ state, visits, value, low, high, extrapolated, exact }, k, { px, left, width, room, narrow }) {
    const y = LINE * (k + 0.5) + 4;
    const name = stateName(state, narrow);
    const { front } = this;
    front.put(`n${k}`, "text", { class: "name end", x: left - 8, y: y + 4 }, name.length > room ? `${name.slice(0, room - 1)}…` : name);
    if (Number.isFinite(low) && Number.isFinite(high))
      front.put(`w${k}`, "line", { class: "whisker", x1: px(low), x2: px(high), y1: y, y2: y, "data-low": low, "data-high": high });
    if (exact !== undefined)
      front.put(`e${k}`, "line", { class: "tick", x1: px(exact), x2: px(exact), y1: y - 8, y2: y + 8, "data-value": exact });
    front.put(`d${k}`, "circle", {
      class: `dot ${extrapolated ? "hollow" : "attention"}`,
      cx: px(value),
      cy: y,
      r: 4.5,
      "data-value": value,
    });
    front.put(`v${k}`, "text", { class: "end", x: width - 4, y: y + 4 }, num(value, Math.abs(value) >= 10 ? 1 : 3));
    front.put(`h${k}`, "rect", { class: "hit", x: 0, y: y - LINE / 2, width, height: LINE, "data-row": k, "data-visits": visits });
  }
}
