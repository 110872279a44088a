// What you see: the scene's words on the right, and below them the number under the pointer or the keyboard's cursor.

import { html, num, rich, write } from "ictd/draw";

const words = document.getElementById("text");
const formula = document.getElementById("formula");
const notice = document.getElementById("notice");
let asked = null;

/** One line at the foot of the page, until something is changed. */
export function tell(line) {
  notice.textContent = line ?? "";
  notice.hidden = !line;
}

/** The scene's own words, with marks as `rich` has them. */
export function say(text) {
  write(words, text);
}

/**
 * Shows `{title, lines, note}`: a number, the formula behind it with its numbers filled in, and what it means, with marks as `rich` has
 * them. Null shows nothing.
 */
export function show(said) {
  formula.hidden = !said;
  if (!said) return;
  const parts = [html("h3", {}, rich(said.title))];
  for (const line of said.lines ?? []) parts.push(html("p", { class: "line" }, rich(line)));
  if (said.note) parts.push(html("p", { class: "note" }, rich(said.note)));
  formula.replaceChildren(...parts);
}

/** What is shown was asked for by this function; it is asked again when numbers change. */
export function ask(explanation) {
  asked = explanation;
  show(explanation ? explanation() : null);
}

/** Fills in the numbers anew, as after a redraw. */
export function again() {
  if (asked) show(asked());
}

/**
 * Makes a picture readable: `at(element, event)` gives the place that an element under the pointer stands for (or null), `move(place, down,
 * right)` the place that an arrow key leads to, `explain(place)` what is said about it and `enter(place)`, where given, what else happens.
 */
export function reads(picture, { at, move, explain, enter = () => {} }) {
  let place = null;
  const go = (next) => {
    place = next;
    enter(next);
    ask(next === null ? null : () => explain(next));
  };
  const look = (event) => {
    const next = at(event.target, event);
    if (next !== null && JSON.stringify(next) !== JSON.stringify(place)) go(next);
  };
  picture.svg.addEventListener("pointermove", look);
  // A finger that taps does not move.
  picture.svg.addEventListener("pointerdown", look);
  picture.svg.addEventListener("pointerleave", (event) => {
    // A finger that is lifted leaves too; what it asked for stays until the next tap.
    if (event.pointerType === "mouse" && document.activeElement !== picture.frame) go(null);
  });
  if (!move) return;
  picture.keys = true;
  picture.frame.tabIndex = 0;
  picture.frame.setAttribute("role", "group");
  picture.frame.setAttribute("aria-label", `${picture.name}: arrow keys read its numbers`);
  picture.frame.addEventListener("keydown", (event) => {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (event.key === "Escape") go(null);
    if (!step || event.target !== picture.frame) return;
    event.preventDefault();
    go(place === null ? move(null, 0, 0) : move(place, ...step));
  });
  picture.frame.addEventListener("blur", () => go(null));
}

addEventListener("pointerdown", (event) => {
  if (event.pointerType !== "mouse" && !event.target.closest("svg, .formula, .controls, .sheet")) ask(null);
});

/** A number in a formula, in brackets where a sign would stand next to another. */
export const term = (value) => (value < 0 ? `(${num(value)})` : num(value));

/**
 * A sum of products written out, largest first: `0.31·1.00 + 0.2·(−0.5) + …`. `pairs` are lists of factors; at most `shown` products are
 * written, none that is below a fiftieth of the largest, and the others put together.
 */
export function products(pairs, shown = 5) {
  const sized = pairs.map((factors) => ({ factors, value: factors.reduce((a, b) => a * b, 1) }));
  sized.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const count = sized.findIndex(({ value }, k) => k >= shown || Math.abs(value) < Math.abs(sized[0].value) / 50);
  const cut = count < 0 ? sized.length : count;
  const first = sized.slice(0, cut).map(({ factors }) => factors.map(term).join("·"));
  const rest = sized.slice(cut);
  if (rest.length > 0)
    first.push(`<span class="rest">${rest.length} more: ${term(rest.reduce((sum, { value }) => sum + value, 0))}</span>`);
  return first.join(" + ");
}
