// A network on a card: its matrices, its branch, and the way into scene 1.

import { html, num } from "ictd/draw";
import { Heat, matrixSummary } from "ictd/heat";

/** Names of branches for readers. */
export const BRANCHES = { td: "TD", mirror: "mirror", none: "neither" };

const NAMES = ["r", "t", "v"];
const LONG = { r: "the reward", t: "the target memory", v: "the value" };
/** The two solutions that training may find, for d features: what a seed on a card would be if it were exactly one of them. */
export function solution(branch, d) {
  const sign = branch === "td" ? 1 : -1;
  const matrix = (entry) => Array.from({ length: d + 3 }, (_, i) => Array.from({ length: d + 3 }, (_, j) => sign * entry(i, j)));
  const V = matrix((i, j) => (i === d + 2 && j >= d ? (j === d + 2 ? -1 : 1) : 0));
  const A = matrix((i, j) => (i === j && i < d ? 1 : 0));
  return { V, A, branch: null, epoch: 0, done: true, failure: null, refusal: null, version: 0 };
}

/** Heights of rows, pixels: a name fits beside each. */
const ROW = 14;

function cell(matrix, name, whose, row, column) {
  const d = matrix.length - 3;
  const of = (k) => (k < d ? `feature ${k + 1}` : LONG[NAMES[k - d]]);
  const value = matrix[row][column];
  const title = `${name}, ${whose}: ${num(value)}`;
  if (name.startsWith("V")) {
    const wanted = row === d + 2 && column >= d ? ` The TD block has ${column === d + 2 ? "a minus" : "a plus"} here.` : "";
    return {
      title,
      lines: [`how much of ${of(column)} a column adds to ${of(row)}`],
      note: `${row === d + 1 ? "The shift overwrites this row." : ""}${wanted}`,
    };
  }
  return {
    title,
    lines: [`what ${of(row)} of a source and ${of(column)} of a column add to their score`],
    note: row === column && row < d ? "The TD block has a plus on all of these: alike attracts alike." : "",
  };
}

/** A card. `name` says whose matrices they are; `enter()` is called for "step into". */
export class SeedCard {
  constructor({ key, name, enter }) {
    this.name = name;
    const whose = name[0].toLowerCase() + name.slice(1);
    const heat = (matrix, entry) =>
      new Heat({
        title: `${matrix} of ${whose}`,
        className: "mini",
        left: 16,
        narrow: 9,
        explain: (row, column) => cell(this.shown[entry], matrix, whose, row, column),
      });
    this.value = heat("V₀", "V");
    this.score = heat("A₀", "A");
    this.value.picture.title("V₀");
    this.score.picture.title("A₀");
    this.branch = html("span", { class: "branch" });
    this.share = html("i", { class: "share" });
    this.step = html("button", { type: "button", class: "small", "data-step-into": key, disabled: true, onclick: enter }, "Step into");
    const head = html("header", {}, html("b", {}, name), this.branch, this.step);
    this.root = html(
      "article",
      { class: "card seed-card", [typeof key === "number" ? "data-seed" : "data-solution"]: key, "aria-label": name },
      head,
      html("div", { class: "track", "aria-hidden": "true" }, this.share),
      html("div", { class: "pair maps" }, this.value.root, this.score.root),
    );
  }

  /** Draws what is known of the seed, colours full at these limits. */
  draw(seed, epochs, limits) {
    const said = `${seed.version},${limits.V},${limits.A},${this.value.picture.width},${document.documentElement.style.colorScheme}`;
    if (this.said === said && this.of === seed) return false;
    Object.assign(this, { said, of: seed, shown: seed });
    const branch = seed.failure ? "failed" : (seed.branch ?? "");
    if (this.root.dataset.branch !== branch) {
      this.root.dataset.branch = branch;
      this.branch.textContent = seed.failure ? "diverged" : (BRANCHES[seed.branch] ?? "waiting");
      this.branch.title = seed.failure ?? "";
    }
    this.root.dataset.epoch = seed.epoch;
    if (seed.done) this.root.dataset.done = "";
    else delete this.root.dataset.done;
    this.share.style.width = `${(100 * seed.epoch) / epochs}%`;
    this.step.disabled = !seed.V || Boolean(seed.failure) || Boolean(seed.refusal);
    this.step.title = seed.refusal ?? "Scene 1 with these parameters";
    if (!seed.V) return true;
    const d = seed.V.length - 3;
    const names = [...Array.from({ length: d }, (_, k) => String(k + 1)), ...NAMES];
    const frame = { rows: names, columns: names, height: ROW };
    this.value.draw({ ...frame, values: seed.V, limit: limits.V });
    this.score.draw({ ...frame, values: seed.A, limit: limits.A });
    if (seed.done) {
      this.value.picture.summary(
        matrixSummary(
          `V₀ of ${this.name}${seed.branch ? `, ${BRANCHES[seed.branch]}` : ""}; last row on reward, target and value ${seed.V.at(-1)
            .slice(d)
            .map((x) => num(x))
            .join(", ")}`,
          seed.V,
        ),
      );
      this.score.picture.summary(matrixSummary(`A₀ of ${this.name}`, seed.A));
    }
    return true;
  }
}
