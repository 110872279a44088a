// The trajectory as a strip of tokens: states in the order they were visited, rewards on the way.

import { Picture, diverging, inkOn, short } from "ictd/draw";
import { reads } from "ictd/explain";

/** The strip. `explain(j)` says what a token is, `choose(j)` is called when one is clicked. */
export class Strip {
  constructor({ title, explain, enter, choose, left = 60, narrow = 20 }) {
    Object.assign(this, { left, narrow });
    this.picture = new Picture({ title, className: "strip", numbers: () => this.table() });
    this.root = this.picture.root;
    this.ways = this.picture.layer("ways");
    this.tokens = this.picture.layer("tokens");
    this.texts = this.picture.layer("texts");
    this.hits = this.picture.layer("hits");
    reads(this.picture, {
      enter,
      at: (element) => (element.dataset.column === undefined ? null : { column: Number(element.dataset.column) }),
      move: (place, down, right) => ({ column: Math.max(0, Math.min(this.data.names.length - 1, (place?.column ?? 0) + right)) }),
      explain: ({ column }) => (column < this.data.names.length ? explain(column) : null),
    });
    this.picture.svg.addEventListener("click", (event) => {
      if (event.target.dataset.column !== undefined) choose(Number(event.target.dataset.column));
    });
  }

  table() {
    const { names, columns, values } = this.data;
    return [["token", "state", "reward", "value"], ...names.map((name, j) => [j, name, columns[j].reward ?? "", values[j]])];
  }

  /** Draws `{names, columns, values, limit, layer, marked, chosen}`. */
  draw(data) {
    const { picture } = this;
    if (picture.width === 0) return;
    this.data = data;
    const count = data.names.length;
    const cell = Math.max(this.narrow, (picture.width - this.left - 8) / count);
    const width = Math.round(this.left + cell * count + 8);
    const radius = Math.min(13, cell * 0.44);
    const [middle, height] = [36, 74];
    const px = (j) => this.left + (j + 0.5) * cell;
    picture.size(width, height);
    picture.svg.classList.toggle("held", count > 24);
    for (const layer of [this.ways, this.tokens, this.texts, this.hits]) layer.begin();
    const reward = cell >= 44;
    if (reward) this.texts.put("rewards", "text", { class: "name end", x: this.left - 6, y: middle - radius - 6 }, "rewards");
    this.texts.put("states", "text", { class: "name end", x: this.left - 6, y: middle + 4.5 }, "states");
    const every = Math.ceil(26 / cell);
    data.names.forEach((name, j) => {
      const { source, terminal, reward: paid } = data.columns[j];
      if (source) {
        this.ways.put(j, "line", { class: "way", x1: px(j) + radius + 2, x2: px(j + 1) - radius - 3, y1: middle, y2: middle });
        if (reward)
          this.texts.put(`r${j}`, "text", { class: "name middle", x: px(j + 0.5), y: middle - radius - 6 }, short(paid, 2) || "0");
      }
      const value = data.values[j];
      const state = `${j === data.marked ? "chosen" : ""} ${source || terminal ? "" : "query"}`;
      this.tokens.put(j, "circle", {
        class: `token moves ${state}`,
        cx: px(j),
        cy: middle,
        r: radius,
        fill: diverging(value, data.limit),
        "data-value": value,
        "data-layer": data.layer,
      });
      this.texts.put(
        `n${j}`,
        "text",
        { class: "cell strong", x: px(j), y: middle + 4.5, style: `fill: ${inkOn(value, data.limit)}` },
        name,
      );
      const last = j === count - 1;
      if (last ? true : j % every === 0 && px(count - 1) - px(j) > 44)
        this.texts.put(
          `j${j}`,
          "text",
          { class: `name ${last ? "end attention" : "middle"}`, x: last ? px(j) + radius : px(j), y: height - 8 },
          last && !terminal && !source ? "query" : `s${sub(j)}`,
        );
      this.hits.put(j, "rect", { class: "hit", x: px(j) - cell / 2, y: 0, width: cell, height, "data-column": j });
    });
    for (const layer of [this.ways, this.tokens, this.texts, this.hits]) layer.end();
    picture.summary(`Trajectory of ${count} tokens: ${data.names.join(", ")}. The last is the query.`);
  }
}

const sub = (j) => String(j).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
