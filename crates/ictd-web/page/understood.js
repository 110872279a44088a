// What a log is taken for, before anything is computed: columns, how much there is, the first transitions.

import { html } from "ictd/draw";

const HEADS = ["episode", "step", "state", "reward", "next state"];

/** Numbers with as many digits as a reader wants. */
const brief = (text) =>
  String(text)
    .replace(/-?\d+\.\d{5,}/g, (digits) => String(Number(Number(digits).toPrecision(4))))
    .replace(/(?<!\w)-(?=[\d.])/g, "−");

const row = (tag, cells) => html("tr", {}, ...cells.map((cell) => html(tag, tag === "th" ? { scope: "col" } : {}, cell)));

/** How much there is, in a sentence. */
function amount({ counts, rows, states }) {
  const ends = [counts.terminated && `${counts.terminated} ended`, counts.truncated && `${counts.truncated} cut short`]
    .filter(Boolean)
    .join(", ");
  const lost = counts.dropped_rows ? ` ${counts.dropped_rows} rows were left out.` : "";
  return `${rows} rows: ${counts.transitions} transitions in ${counts.episodes} episodes (${ends}), ${states} different states.${lost}`;
}

/** The card's parts. */
export class Understood {
  constructor() {
    this.title = html("h3");
    this.amount = html("p", { id: "log-amount" });
    this.columns = html("dl", { class: "roles" });
    this.table = html("tbody");
    this.warnings = html("ul", { class: "reasons" });
    const table = html(
      "table",
      { class: "rows", id: "log-first" },
      html("caption", {}, "The first transitions, as understood"),
      html("thead", {}, row("th", HEADS)),
      this.table,
    );
    this.root = html(
      "div",
      { class: "understood" },
      this.title,
      this.amount,
      this.columns,
      html("div", { class: "frame" }, table),
      this.warnings,
    );
  }

  draw(name, understood) {
    this.title.textContent = name;
    this.amount.textContent = amount(understood);
    this.amount.dataset.value = understood.counts.transitions;
    this.columns.replaceChildren(
      ...understood.columns.map((line) => {
        const at = line.indexOf(": ");
        return html("div", {}, html("dt", {}, line.slice(0, at)), html("dd", { "data-role": line.slice(0, at) }, line.slice(at + 2)));
      }),
    );
    this.table.replaceChildren(
      ...understood.first.map(({ episode, step, state, reward, next }) =>
        row("td", [String(episode), String(step), brief(state), brief(reward), brief(next)]),
      ),
    );
    this.warnings.replaceChildren(...understood.warnings.map((line) => html("li", {}, line)));
  }
}
