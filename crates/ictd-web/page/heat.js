// Heat maps: a matrix of numbers as coloured cells, with names, marks and a cursor for the keyboard.

import { PAPER, Picture, TEXT, colorOf, digitsFor, diverging, inkOn, most, num, shade, short, svg } from "ictd/draw";
import { reads } from "ictd/explain";

/** The smallest width of a column, pixels: below it cells cannot be told apart, and the frame scrolls instead. */
const NARROW = 6;

/**
 * A heat map. `explain(row, column)` says what a cell is, for pointer and keyboard; `left` is the room for names of rows, the same in
 * pictures that stand above one another so that their columns are aligned, and `narrow` the least width of a column.
 */
export class Heat {
  constructor({ title, explain, enter, left = 60, narrow = NARROW, className = "" }) {
    Object.assign(this, { left, narrow, explain });
    this.picture = new Picture({ title, className: `heat ${className}`, numbers: () => this.table() });
    this.root = this.picture.root;
    this.cells = this.picture.layer("cells");
    this.numbers = this.picture.layer("numbers");
    this.names = this.picture.layer("names");
    this.marks = this.picture.layer("marks");
    this.hit = this.picture.svg.appendChild(svg("rect", { class: "hit" }));
    this.shape = "";
    const inside = (at, count) => Math.max(0, Math.min(count - 1, at));
    reads(this.picture, {
      enter,
      at: (element, event) => (element === this.hit ? this.find(event) : null),
      move: (place, down, right) => ({
        row: inside((place?.row ?? 0) + down, this.data.values.length),
        column: inside((place?.column ?? 0) + right, this.data.values[0].length),
      }),
      explain: (place) => (this.data.values[place.row]?.[place.column] === undefined ? null : this.explain(place.row, place.column)),
    });
  }

  /** The cell under the pointer. */
  find(event) {
    const box = this.hit.getBoundingClientRect();
    const { values } = this.data;
    const share = (at, from, size, count) => Math.max(0, Math.min(count - 1, Math.floor(((at - from) / size) * count)));
    return {
      row: share(event.clientY, box.top, box.height, values.length),
      column: share(event.clientX, box.left, box.width, values[0].length),
    };
  }

  table() {
    const { values, rows, columns } = this.data;
    return [["", ...columns], ...values.map((row, i) => [rows[i], ...row])];
  }

  /**
   * Draws `{values, rows, columns, limit, height, layer, outline, row, column}`: values row by row with names of rows and columns,
   * the number of full colour, the height of a row, a column to outline, and a row and a column under the pointer.
   */
  draw(data) {
    const { picture } = this;
    if (picture.width === 0) return;
    const tall = data.values.length;
    const wide = data.values[0].length;
    const limit = data.limit ?? most(data.values);
    const cell = Math.max(this.narrow, (picture.width - this.left - 8) / wide);
    const height = data.height ?? 22;
    const top = TEXT + 7;
    const size = [Math.round(this.left + cell * wide + 8), top + height * tall + 5];
    const shape = `${tall},${wide},${size},${height}`;
    const again = shape !== this.shape;
    const fresh = again || this.values !== data.values || this.limit !== limit || this.ink !== diverging(1, 1);
    this.data = data;
    if (again) this.build(tall, wide, cell, height, top);
    if (fresh) {
      Object.assign(this, { shape, values: data.values, limit, ink: diverging(1, 1) });
      this.fill(data, limit);
      this.write(data, limit, cell, height, top);
      picture.size(...size);
      picture.scale(
        limit,
        data.values.some((row) => row.some((value) => value < 0)),
      );
    }
    this.name(data, cell, height, top, again);
    this.mark(data, cell, height, top);
  }

  /** Outlines of all cells, as pieces of paths. */
  build(tall, wide, cell, height, top) {
    const gap = cell > 10 && height > 12 ? 1 : 0;
    const [w, h] = [(cell - gap).toFixed(2), height - gap];
    this.pieces = [];
    for (let i = 0; i < tall; i++) {
      for (let j = 0; j < wide; j++) this.pieces.push(`M${(this.left + j * cell).toFixed(2)} ${top + i * height}h${w}v${h}h-${w}z`);
    }
    for (const [name, value] of Object.entries({
      x: this.left,
      y: top,
      width: cell * wide,
      height: height * tall,
      "data-rows": tall,
      "data-columns": wide,
    }))
      this.hit.setAttribute(name, value);
  }

  /** One path per colour: thousands of elements would take longer than a frame to restyle. */
  fill({ values, layer }, limit) {
    const byShade = new Map();
    let k = 0;
    for (const row of values) {
      for (const value of row) {
        const step = shade(value, limit);
        if (step !== PAPER) {
          const list = byShade.get(step);
          if (list) list.push(this.pieces[k]);
          else byShade.set(step, [this.pieces[k]]);
        }
        k++;
      }
    }
    // Paths are counted, not named by their colour: a change of colours then changes paths and makes none.
    let count = 0;
    this.cells.begin();
    for (const [step, list] of byShade) this.cells.put(count++, "path", { fill: colorOf(step), d: list.join("") });
    this.cells.end();
    if (layer !== undefined) this.hit.setAttribute("data-layer", layer);
  }

  /** Numbers in cells, where all of them fit. */
  write({ values, layer }, limit, cell, height, top) {
    const digits = height >= TEXT + 2 ? digitsFor(values.flat(), cell) : -1;
    this.numbers.begin();
    if (digits >= 0) {
      values.forEach((row, i) => {
        row.forEach((value, j) => {
          const place = { x: this.left + (j + 0.5) * cell, y: top + (i + 0.5) * height + 4.5 };
          const said = { style: `fill: ${inkOn(value, limit)}`, "data-row": i, "data-column": j, "data-value": value, "data-layer": layer };
          this.numbers.put(i * 1000 + j, "text", { class: "cell", ...place, ...said }, value === null ? "" : short(value, digits));
        });
      });
    }
    this.numbers.end();
  }

  name(data, cell, height, top, again) {
    const said = `${data.rows}|${data.columns}`;
    if (!again && said === this.said) return;
    this.said = said;
    this.names.begin();
    // Names that would touch are left out, all but every second, third, …
    const across = Math.ceil((Math.max(...data.columns.map((name) => name.length)) * 7 + 4) / cell);
    data.columns.forEach((name, j) => {
      if (j % across === 0) this.names.put(`c${j}`, "text", { class: "name middle", x: this.left + (j + 0.5) * cell, y: TEXT - 1 }, name);
    });
    const down = Math.ceil((TEXT + 1) / height);
    data.rows.forEach((name, i) => {
      if (i % down === 0) this.names.put(`r${i}`, "text", { class: "name end", x: this.left - 6, y: top + (i + 0.5) * height + 4 }, name);
    });
    this.names.end();
  }

  mark(data, cell, height, top) {
    const wide = data.values[0].length;
    const tall = data.values.length;
    this.marks.begin();
    const box = (key, className, x, y, w, h) =>
      this.marks.put(key, "rect", { class: className, x: x - 0.5, y: y - 0.5, width: w, height: h });
    if (data.outline !== undefined) box("outline", "outline", this.left + data.outline * cell, top, cell, tall * height);
    if (data.column !== undefined && data.column < wide) box("column", "marked", this.left + data.column * cell, top, cell, tall * height);
    if (data.row !== undefined && data.row < tall) box("row", "marked", this.left, top + data.row * height, wide * cell, height);
    this.marks.end();
  }
}

/** One line for readers of the screen: what a matrix is and what stands out. */
export function matrixSummary(name, values) {
  const flat = values.flat();
  return `${name}: ${values.length} rows, ${values[0].length} columns, from ${num(Math.min(...flat))} to ${num(Math.max(...flat))}`;
}
