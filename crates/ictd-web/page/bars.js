// Bars over columns that are aligned with the heat maps: from where to where, with dots and ticks beside them.

import { Picture, TEXT, digitsFor, short } from "ictd/draw";
import { reads } from "ictd/explain";
import { tick, ticks } from "ictd/chart";

/** Bars. `explain(column)` says what a column shows. */
export class Bars {
  constructor({ title, explain, enter, left = 60, height = 130, className = "" }) {
    Object.assign(this, { left, height });
    this.picture = new Picture({ title, className: `bars ${className}`, numbers: () => this.data.table });
    this.root = this.picture.root;
    this.back = this.picture.layer("axes");
    this.ground = this.picture.layer("base");
    this.bars = this.picture.layer("bars");
    this.front = this.picture.layer("front");
    reads(this.picture, {
      enter,
      at: (element) => (element.dataset.column === undefined ? null : { column: Number(element.dataset.column) }),
      move: (place, down, right) => ({ column: Math.max(0, Math.min(this.data.columns.length - 1, (place?.column ?? 0) + right)) }),
      explain: ({ column }) => explain(column),
    });
  }

  /**
   * Draws `{columns, least, most, bars, dots, levels, marked, layer, table}`: bars `{key, column, from, to, className, value, thin}`, dots
   * `{key, column, at, className, value}`, levels (short lines) likewise.
   */
  draw(data) {
    const { picture, left, height } = this;
    if (picture.width === 0) return;
    this.data = data;
    const count = data.columns.length;
    const cell = Math.max(6, (picture.width - left - 8) / count);
    const width = Math.round(left + cell * count + 8);
    const top = TEXT + 8;
    const bottom = height - TEXT - 8;
    const span = data.most - data.least || 1;
    const py = (value) => bottom - ((value - data.least) / span) * (bottom - top);
    const px = (column) => left + (column + 0.5) * cell;
    picture.size(width, height);
    // Many bars that move at once would take longer than a frame, and nobody can follow them.
    picture.svg.classList.toggle("held", count > 24);
    this.axes(data, { py, px, cell, width, top, bottom });
    this.base(data, { px, cell, top, bottom });
    this.shapes(data, { py, px, cell });
  }

  axes(data, { py, px, cell, width, top, bottom }) {
    const { back, left } = this;
    back.begin();
    if (data.marked !== undefined)
      back.put("marked", "rect", { class: "ground", x: px(data.marked) - cell / 2, y: top - 4, width: cell, height: bottom - top + 8 });
    for (const value of ticks(data.least, data.most, 4)) {
      back.put(`y${value}`, "line", { class: value === 0 ? "grid zero" : "grid", x1: left, x2: width - 8, y1: py(value), y2: py(value) });
      back.put(`t${value}`, "text", { class: "name end", x: left - 6, y: py(value) + 4 }, tick(value));
    }
    back.end();
  }

  /** Names of columns, and what answers the pointer: as long as columns are the same, these are too. */
  base(data, { px, cell, top, bottom }) {
    const said = `${data.columns},${cell}`;
    if (said === this.said) return;
    this.said = said;
    const { ground, height } = this;
    ground.begin();
    const across = Math.ceil((Math.max(...data.columns.map((name) => name.length)) * 7 + 4) / cell);
    data.columns.forEach((name, j) => {
      if (j % across === 0) ground.put(`c${j}`, "text", { class: "name middle", x: px(j), y: height - 4 }, name);
      // All of a column answers the pointer, not its bar alone.
      ground.put(`hit${j}`, "rect", {
        class: "hit",
        x: px(j) - cell / 2,
        y: top - 4,
        width: cell,
        height: bottom - top + 8,
        "data-column": j,
      });
    });
    ground.end();
  }

  shapes(data, { py, px, cell }) {
    const half = Math.max(1.5, Math.min(14, cell * 0.36));
    // One digit would say less than the axis does.
    const digits =
      digitsFor(
        (data.bars ?? []).map(({ value }) => value),
        cell,
      ) === 2
        ? 2
        : -1;
    this.bars.begin();
    for (const { key, column, from, to, className, value, wide } of data.bars ?? []) {
      const reach = wide ? Math.max(2, cell * 0.46) : half;
      this.bars.put(key, "rect", {
        class: `bar moves ${className}`,
        x: px(column) - reach,
        width: 2 * reach,
        y: Math.min(py(from), py(to)),
        height: Math.max(0.5, Math.abs(py(from) - py(to))),
        "data-column": column,
        "data-value": value,
        "data-layer": data.layer,
      });
      const text = digits < 0 ? "" : short(value, digits);
      if (text)
        this.bars.put(`t${key}`, "text", { class: "name middle value", x: px(column), y: to >= from ? py(to) - 4 : py(to) + TEXT }, text);
    }
    this.bars.end();
    this.front.begin();
    for (const { key, column, at, className, value } of data.levels ?? []) {
      const reach = Math.min(cell * 0.46, 16);
      this.front.put(key, "line", {
        class: `tick ${className}`,
        x1: px(column) - reach,
        x2: px(column) + reach,
        y1: py(at),
        y2: py(at),
        "data-column": column,
        "data-value": value,
      });
    }
    for (const { key, column, from, to, className } of data.stems ?? []) {
      this.front.put(key, "line", {
        class: `stem ${className}`,
        x1: px(column),
        x2: px(column),
        y1: py(from),
        y2: py(to),
        "data-column": column,
      });
    }
    for (const { key, column, at, className, value, r = 4.5, layer } of data.dots ?? []) {
      this.front.put(key, "circle", {
        class: `dot moves ${className}`,
        cx: px(column),
        cy: py(at),
        r: Math.min(r, Math.max(2, cell * 0.42)),
        "data-column": column,
        "data-value": value,
        "data-layer": layer,
      });
    }
    this.front.end();
  }
}
