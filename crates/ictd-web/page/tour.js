// The tour: eight steps whose text is docs/how-it-works.md, each beside the picture that it is about.

import { html, plain, rich } from "ictd/draw";
import { field, remember, state, subscribe, update, whole } from "ictd/state";

const PLAIN = { scene: "layer", block: null, window: null };
/** What each step shows, and what it points at. */
const STEPS = [
  { patch: PLAIN, lit: ".graph" },
  { patch: PLAIN, lit: ".strip" },
  { patch: { ...PLAIN, layer: 1 }, lit: ".before" },
  { patch: PLAIN, lit: ".weights" },
  // From the second layer on all three terms of an error are there.
  { patch: { ...PLAIN, layer: 2 }, lit: ".read, .errors" },
  { patch: { ...PLAIN, layer: 2 }, lit: ".after" },
  { patch: { ...PLAIN, layer: 1 }, lit: ".stepper" },
  { patch: { scene: "train" }, lit: ".trainbar" },
];

field("tour", null, whole(1, STEPS.length));

/** The few marks that the text uses inside a line. Links lead to other pages of the docs, which are not here. */
const inline = (text) =>
  plain(text.replace(/\\\*/g, "\u2217"))
    .replace(/`([^`]+)`/g, "<code>$1</code>")
    .replace(/\*\*([^*]+)\*\*/g, "<b>$1</b>")
    .replace(/\*([^*]+)\*/g, "<i>$1</i>")
    .replace(/\[([^\]]+)\]\([^)]+\)/g, "$1")
    .replaceAll("\u2217", "*");

/** The numbered sections of the text: `[{title, body}]`, the body as elements. */
export function sectionsOf(text) {
  const found = [];
  for (const part of text.split(/^## /m).slice(1)) {
    const title = /^\d+\. (.*)/.exec(part)?.[1];
    if (!title) continue;
    const body = [];
    for (const block of part
      .slice(part.indexOf("\n"))
      .trim()
      .split(/\n{2,}(?=\S)/)) {
      const code = /^```\w*\n([\s\S]*?)\n```$/.exec(block.trim());
      const element = html(code ? "pre" : "p");
      if (code) element.textContent = code[1];
      else element.append(rich(inline(block.replace(/\n/g, " "))));
      body.push(element);
    }
    found.push({ title, body });
  }
  return found;
}

/** The panel at the right, above the scene's own words. */
class Panel {
  constructor(sections) {
    this.sections = sections;
    this.count = html("p", { class: "soft" });
    this.title = html("h2", { tabindex: -1 });
    this.body = html("div", { class: "text" });
    const button = (id, name, go, className = "") => html("button", { type: "button", id, class: className, onclick: go }, name);
    this.back = button("tour-back", "Back", () => this.go(-1));
    this.next = button("tour-next", "Next", () => this.go(1), "main");
    const end = button("tour-end", "Leave the tour", () => update({ tour: null }), "quiet");
    this.root = html(
      "section",
      { class: "tour", "aria-label": "Tour", hidden: true },
      this.count,
      this.title,
      this.body,
      html("div", { class: "buttons" }, this.back, this.next, end),
    );
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") update({ tour: null });
      if (event.key === "ArrowRight") this.go(1);
      if (event.key === "ArrowLeft") this.go(-1);
    });
  }

  go(by) {
    const to = state.tour + by;
    if (to >= 1) update({ tour: to > this.sections.length ? null : to }, { step: true });
  }

  draw(step) {
    const { title, body } = this.sections[step - 1];
    this.count.textContent = `Step ${step} of ${this.sections.length}`;
    this.title.textContent = title;
    this.body.replaceChildren(...body);
    this.root.dataset.step = step;
    this.back.disabled = step === 1;
    this.next.textContent = step === this.sections.length ? "Done" : "Next";
    this.title.focus({ preventScroll: true });
  }
}

function light(selector) {
  for (const element of document.querySelectorAll(".lit")) element.classList.remove("lit");
  if (!selector) return;
  // A card with one picture is that picture's frame.
  const frame = (element) => {
    const card = element.closest(".card");
    return card && card.querySelectorAll(".picture").length < 2 ? card : element;
  };
  const found = [...document.querySelectorAll(selector)].map(frame);
  for (const element of found) element.classList.add("lit");
  const narrow = matchMedia("(max-width: 760px)").matches;
  found[0]?.scrollIntoView({ block: narrow ? "start" : "center" });
}

/** Puts the tour into the page, where its text is. Called when the scenes listen already: a step points at what they have drawn. */
export function openTour() {
  const text = document.getElementById("how-it-works")?.textContent;
  if (!text) return;
  const panel = new Panel(sectionsOf(text));
  document.querySelector(".side").prepend(panel.root);
  const start = () => {
    remember("the tour");
    update({ tour: 1 }, { step: true });
  };
  document.getElementById("tools").prepend(html("button", { type: "button", id: "tour", onclick: start }, "Tour"));
  let shown = null;
  const sync = () => {
    if (state.tour === shown) return;
    shown = state.tour;
    panel.root.hidden = shown === null;
    document.body.classList.toggle("touring", shown !== null);
    if (shown === null) {
      light(null);
      return;
    }
    const { patch, lit } = STEPS[shown - 1];
    update(patch);
    panel.draw(shown);
    // The scene is there in the frame after the next, drawn with its own size in the one after that.
    requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => shown === state.tour && light(lit))));
  };
  subscribe(sync);
  sync();
}
