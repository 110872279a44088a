// The ledger: attention's numbers over TD's numbers, column by column, and their difference.

import { html, num } from "ictd/draw";
import { ask } from "ictd/explain";

/** Powers of ten with one digit, no leading zeros: columns stay as narrow as values need. */
const brief = (value) =>
  value !== 0 && (Math.abs(value) < 5e-4 || Math.abs(value) >= 1e4)
    ? value.toExponential(Math.abs(value) >= 1e4 ? 1 : 0).replace("e+", "e").replace(/-/g, "−")
    : num(value, Math.abs(value) >= 10 ? 1 : 3).replace(/^(−?)0\./, "$1.");

/** A table of values after the layer. `explain(j)` says what a column is. */
export class Ledger {
  constructor({ explain, enter }) {
    this.head = html("tr");
    this.rows = [];
    this.body = html("tbody");
    this.explain = explain;
    this.enter = enter;
    this.caption = html("caption");
    const table = (this.table = html("table", { class: "ledger" }, this.caption, html("thead", {}, this.head), this.body));
    this.root = html("div", { class: "card frame", tabindex: 0, role: "group", "aria-label": "Values after the layer, both sides" }, table);
    table.addEventListener("pointerover", (event) => {
      const column = event.target.dataset?.column;
      if (column === undefined) return;
      enter({ column: Number(column) });
      ask(() => this.explain(Number(column)));
    });
    table.addEventListener("pointerleave", () => {
      enter(null);
      ask(null);
    });
  }

  shape(sides, count) {
    if (this.built === `${sides.map(({ key }) => key)},${count}`) return;
    this.built = `${sides.map(({ key }) => key)},${count}`;
    this.heads = Array.from({ length: count }, (_, j) => html("th", { scope: "col", "data-column": j }));
    this.marked = undefined;
    this.table.style.setProperty("--columns", count);
    this.head.replaceChildren(html("th"), ...this.heads);
    this.rows = sides.map(({ key, name, className }) => {
      const cells = this.heads.map((_, j) => html("td", { "data-column": j, "data-side": key }));
      return { row: html("tr", { class: className }, html("th", { scope: "row" }, name), ...cells), cells };
    });
    this.body.replaceChildren(...this.rows.map(({ row }) => row));
  }

  /** Draws `{layer, names, sides: [{key, name, className, values}], marked}`. */
  draw({ layer, names, sides, marked }) {
    this.shape(sides, names.length);
    const caption = `Values after layer ${layer}`;
    if (this.caption.textContent !== caption) this.caption.textContent = caption;
    names.forEach((name, j) => {
      if (this.heads[j].textContent !== name) this.heads[j].textContent = name;
    });
    sides.forEach(({ values }, k) => {
      values.forEach((value, j) => {
        const cell = this.rows[k].cells[j];
        if (cell.value === value && cell.dataset.layer === String(layer)) return;
        cell.value = value;
        cell.textContent = cell.said = brief(value);
        cell.dataset.value = value;
        cell.dataset.layer = layer;
      });
    });
    // Columns are as wide as the longest number needs; five letters fit anyway.
    const longest = Math.max(...this.rows.flatMap(({ cells }) => cells.map(({ said }) => said.length)));
    if (this.longest !== longest) this.table.style.setProperty("--cell", `${longest > 5 ? Math.ceil(8.6 * longest + 8) : 46}px`);
    this.longest = longest;
    if (this.marked === marked) return;
    for (const [column, on] of [
      [this.marked, false],
      [marked, true],
    ]) {
      if (column === undefined) continue;
      this.heads[column]?.classList.toggle("marked", on);
      for (const { cells } of this.rows) cells[column]?.classList.toggle("marked", on);
    }
    this.marked = marked;
  }
}
