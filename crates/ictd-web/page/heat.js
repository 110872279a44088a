// Heat maps: a matrix of numbers as coloured cells, with names, marks and a cursor for the keyboard.

import { Picture, TEXT, digitsFor, diverging, inkOn, most, num, short, svg } from "ictd/draw";
import { reads } from "ictd/explain";

/** The smallest width of a column, pixels: below it cells cannot be told apart, and the frame scrolls instead. */
const NARROW = 6;

/**
 * A heat map. `explain(row, column)` says what a cell is, for pointer and keyboard; `left` is the room for names of rows, the same in
 * pictures that stand above one another so that their columns are aligned, and `narrow` the least width of a column.
 */
export class Heat {
  constructor({ title, explain, enter, left = 60, narrow = NARROW, className = "" }) {
    Object.assign(this, { left, narrow });
    this.explain = explain;
    this.picture = new Picture({ title, className: `heat ${className}`, numbers: () => this.table() });
    this.root = this.picture.root;
    this.cells = [];
    this.group = this.picture.svg.appendChild(svg("g"));
    this.names = this.picture.layer("names");
    this.marks = this.picture.layer("marks");
    this.shape = "";
    reads(this.picture, {
      enter,
      at: (element) => (element.cell ? { row: element.cell[0], column: element.cell[1] } : null),
      move: (place, down, right) => ({
        row: Math.max(0, Math.min(this.data.values.length - 1, (place?.row ?? 0) + down)),
        column: Math.max(0, Math.min(this.data.values[0].length - 1, (place?.column ?? 0) + right)),
      }),
      explain: (place) => (this.data.values[place.row]?.[place.column] === undefined ? null : this.explain(place.row, place.column)),
    });
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
    const fresh = again || this.values !== data.values || this.limit !== limit || this.back !== diverging(1, 1);
    this.data = data;
    if (again) this.build(tall, wide, cell, height, top);
    if (fresh) {
      this.fill(data, limit, cell, height);
      Object.assign(this, { shape, values: data.values, limit, back: diverging(1, 1) });
      picture.size(...size);
      picture.scale(limit, data.values.some((row) => row.some((value) => value < 0)));
    }
    this.name(data, cell, height, top, again);
    this.mark(data, cell, height, top);
  }

  build(tall, wide, cell, height, top) {
    this.group.replaceChildren();
    this.cells = [];
    for (let i = 0; i < tall; i++) {
      for (let j = 0; j < wide; j++) {
        const x = this.left + j * cell;
        const y = top + i * height;
        const gap = cell > 12 && height > 12 ? 1 : 0;
        const rect = svg("rect", { x, y, width: cell - gap, height: height - gap, "data-row": i, "data-column": j });
        rect.cell = [i, j];
        this.group.append(rect);
        this.cells.push({ rect, text: null, x: x + (cell - gap) / 2, y: y + (height - gap) / 2 + 4.5 });
      }
    }
  }

  fill(data, limit, cell, height) {
    const wide = data.values[0].length;
    const digits = height >= TEXT + 2 ? digitsFor(data.values.flat(), cell) : -1;
    data.values.forEach((row, i) => {
      for (let j = 0; j < wide; j++) {
        const it = this.cells[i * wide + j];
        const value = row[j];
        const color = diverging(value, limit);
        if (it.color !== color) it.rect.setAttribute("fill", (it.color = color));
        if (it.value !== value) it.rect.setAttribute("data-value", (it.value = value));
        const text = digits < 0 ? "" : short(value, digits);
        if (text && !it.text) {
          it.text = svg("text", { class: "cell", x: it.x, y: it.y });
          this.group.append(it.text);
        }
        if (it.text) {
          if (it.said !== text) it.text.textContent = it.said = text;
          const ink = inkOn(value, limit);
          if (it.ink !== ink) it.text.style.fill = it.ink = ink;
        }
      }
    });
    if (data.layer !== undefined) this.group.setAttribute("data-layer", data.layer);
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
    const box = (key, className, x, y, w, h) => this.marks.put(key, "rect", { class: className, x: x - 0.5, y: y - 0.5, width: w, height: h });
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
