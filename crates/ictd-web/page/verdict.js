// The verdict on depth: one sentence, the numbers behind it, and what would help.

import { html, num } from "ictd/draw";
import { reading, remember, state, undo, undoable, update } from "ictd/state";

const SENTENCES = {
  certified: "Depth converges, by proof: every layer brings every state nearer to the limit.",
  estimated: "Depth converges in the long run, by the numbers; errors may grow on the way.",
  refused: "Depth does not converge here: more layers are no better.",
  undecided: "Whether depth converges could not be decided: no eigenvalues were found.",
};
const REGIMES = {
  assumption: "Assumption 5.1 holds: every state attends mostly to itself",
  provable: "a small enough step converges, by proof",
  "in fact": "a small enough step converges, by the numbers",
  marginal: "rounding decides",
  unstable: "no step size converges",
};
/** Suggestions that are shown; the first are the best. */
const SHOWN = 5;

const FLAGS = { "--temperature": "tau", "--step-size": "alpha", "--kernel": "kernel", "--layers": "layers" };
const WORDS = new Set(["kernel"]);

/** What options of the command line change in the page, or null where the page has no such control. */
export function patchOf(options) {
  const patch = {};
  const words = options.split(" ").filter(Boolean);
  while (words.length > 0) {
    const flag = words.shift();
    if (flag === "--unit-norm") patch.unit = true;
    else if (FLAGS[flag]) patch[FLAGS[flag]] = WORDS.has(FLAGS[flag]) ? words.shift() : Number(Number(words.shift()).toPrecision(12));
    else return null;
  }
  const fits = Object.entries(patch).every(([name, value]) => name === "unit" || reading(name, String(value)) !== undefined);
  return fits && Object.keys(patch).length > 0 ? patch : null;
}

const fact = (key, name) => {
  const value = html("b", { "data-fact": key });
  const note = html("span", { class: "soft" });
  const root = html("div", { class: "fact" }, html("span", {}, name), value, note);
  const set = (number, text, good) => {
    value.textContent = text ?? num(number);
    value.dataset.value = number;
    value.className = good === undefined ? "" : good ? "good" : "bad";
  };
  return { root, set, note };
};

/** What a suggestion changes, without digits that say nothing. */
const brief = (change) => change.replace(/(\d\.\d{4,})/g, (x) => String(Number(Number(x).toPrecision(4))));

/** The card. */
export class Verdict {
  constructor() {
    this.status = html("span", { class: "status", id: "depth-status" });
    this.sentence = html("p", { class: "sentence" });
    this.facts = {
      norm: fact("norm_inf", "Largest factor of a layer, ‖J‖∞"),
      radius: fact("spectral_radius", "Factor in the long run, ρ(J)"),
      margin: fact("margin", "Margin of Assumption 5.1"),
      step: fact("largest_stable", "Steps α converge below"),
      regime: fact("regime", "Regime"),
    };
    this.reasons = html("ul", { class: "reasons" });
    this.best = html("p", { class: "best" });
    this.list = html("div", { class: "suggestions", role: "group", "aria-label": "Changes that help" });
    this.back = html("button", { type: "button", class: "small", id: "undo-suggestion", onclick: undo });
    const facts = html("div", { class: "facts" }, ...Object.values(this.facts).map(({ root }) => root));
    this.root = html(
      "section",
      { class: "card verdict" },
      html("header", { "aria-live": "polite" }, this.status, this.sentence),
      facts,
      html("details", {}, html("summary", {}, "In the certificate's words"), this.reasons),
      html("h3", {}, "What would help"),
      this.best,
      this.list,
      this.back,
    );
  }

  /** Draws a certificate; `error` takes its place where there is none. */
  draw({ certificate, error, fresh, key }) {
    this.root.classList.toggle("stale", !fresh);
    this.root.dataset.fresh = fresh;
    this.back.hidden = !undoable();
    this.back.textContent = `Undo: ${undoable()}`;
    if (error && fresh) this.sentence.textContent = error;
    if (!certificate || !fresh || this.key === key) return;
    this.key = key;
    const { status, reasons, contraction, stability, steps, suggestion, suggestions } = certificate;
    this.root.dataset.status = status;
    this.status.textContent = status;
    this.sentence.textContent = SENTENCES[status];
    this.say(contraction, stability, steps, reasons);
    this.reasons.replaceChildren(...reasons.map((reason) => html("li", {}, reason)));
    this.best.textContent = suggestion.replace(/ \(--[^)]*\)/, "");
    const layers = /--layers (\d+)/.exec(suggestion)?.[0];
    this.suggest([
      ...(layers && !suggestion.includes("enough")
        ? [{ change: layers.replace("--layers ", "") + " layers", options: layers, status: "", error_at_depth: null }]
        : []),
      ...suggestions,
    ]);
  }

  say({ norm_inf, spectral_radius, min_diag, required_diag }, { margin, regime }, steps, reasons) {
    const { norm, radius, margin: room, step, regime: name } = this.facts;
    const near = (value) =>
      value !== null && Math.abs(1 - value) < 5e-4 && value !== 1
        ? `1 ${value < 1 ? "−" : "+"} ${Math.abs(1 - value)
            .toExponential(1)
            .replace("-", "−")}`
        : num(value);
    // Null compares as 0: what was not found is below nothing.
    const below = (value) => value !== null && value < 1;
    norm.set(norm_inf, near(norm_inf), below(norm_inf));
    norm.note.textContent = below(norm_inf) ? "below 1: every layer contracts" : "not below 1: a layer may enlarge errors";
    radius.set(spectral_radius, near(spectral_radius), below(spectral_radius));
    radius.note.textContent =
      spectral_radius === null ? "not found" : below(spectral_radius) ? "below 1: errors vanish" : "not below 1: errors stay or grow";
    // Weights are those of states that were left; one that was only reached has none on itself.
    const holds = min_diag > required_diag;
    const partly = holds && !below(norm_inf);
    const reached = reasons.some((reason) => reason.includes("never left"));
    const but = reached ? "only states that were left count here, and some were only reached" : "it promises nothing for steps α above 1";
    room.set(margin, num(min_diag - required_diag), partly ? undefined : holds);
    room.note.textContent = `least weight on oneself ${num(min_diag)}, wanted ${num(required_diag)}${partly ? `; but ${but}` : ""}`;
    step.set(
      steps.largest_stable,
      steps.largest_stable === null ? "none" : num(steps.largest_stable),
      steps.largest_stable !== null && state.alpha < steps.largest_stable,
    );
    step.note.textContent = steps.best === null ? "every step size diverges" : `fastest in the long run: ${num(steps.best)}`;
    name.set(regime, regime, regime !== "unstable" && regime !== "marginal");
    name.note.textContent = REGIMES[regime] ?? "";
  }

  suggest(suggestions) {
    const usable = suggestions.map((entry) => ({ ...entry, patch: patchOf(entry.options) })).filter(({ patch }) => patch);
    const buttons = usable.slice(0, SHOWN).map(({ change, options, patch, status, error_at_depth, helps }) => {
      const error = error_at_depth === null ? "" : `, error ${num(error_at_depth, 2)} of the largest value`;
      const apply = () => {
        remember(brief(change));
        update(patch);
      };
      return html(
        "button",
        { type: "button", class: "suggestion", "data-options": options, onclick: apply },
        html("b", {}, brief(change)),
        html("span", { class: "soft" }, status ? `${status}${error}${helps ? `, ${helps}` : ""}` : "deep enough for 1 %"),
      );
    });
    this.list.replaceChildren(...buttons);
    this.list.hidden = buttons.length === 0;
  }
}
