// The editor of a state: its reward, its features, adding and removing.

import { html, num, write } from "ictd/draw";
import { tell } from "ictd/explain";
import { remember, state, update } from "ictd/state";
import { MOST_STATES, letter, processOf } from "ictd/model";
import { withFeatures, withReward, withState, withoutState } from "ictd/own";

/** How far rewards and features go on sliders; numbers may go further. */
const REACH = 2;
const FAR = 100;

/** Changes the process; the address then spells it out. What the engine refuses is said, and is not done. */
function edit(label, change, ...inputs) {
  const own = change(processOf(state), ...inputs);
  try {
    processOf({ ...state, own });
  } catch (error) {
    tell(`${error.message}. Nothing was changed.`);
    return false;
  }
  remember(label);
  update({ own });
  return true;
}

/** Sets the reward on leaving a state. */
export const setReward = (s, reward) => edit(`the reward of ${letter(s)}`, withReward, s, reward);
/** Moves a state in the space of features. */
export const setFeatures = (s, x) => edit(`the features of ${letter(s)}`, withFeatures, s, x);

/** Adds a state after s, and chooses it. */
export function addState(s) {
  const m = processOf(state).P.length;
  if (m >= MOST_STATES) return;
  if (edit(`the state ${letter(m)}`, withState, s)) update({ chosen: m });
}

/** Removes a state, unless it is one of the last two. */
export function removeState(s) {
  if (processOf(state).P.length <= 2) return;
  if (edit(`removing ${letter(s)}`, withoutState, s)) update({ chosen: null, hover: null });
}

function line(label, set) {
  let used = 0;
  const range = html("input", {
    type: "range",
    min: -REACH,
    max: REACH,
    step: 0.05,
    "aria-label": `${label}, slider`,
    oninput: () => set(Number(range.value)),
  });
  const exact = html("input", {
    type: "number",
    step: "any",
    "aria-label": label,
    onchange: () => {
      const value = Number(exact.value);
      if (exact.value !== "" && Math.abs(value) <= FAR) set(value);
      else {
        tell(`${label}: expected a number from −${FAR} to ${FAR}${exact.value ? `, found ${exact.value}` : ""}.`);
        exact.value = used;
      }
    },
  });
  const root = html("div", { class: "row" }, html("span", {}, label), range, exact);
  const sync = (value) => {
    used = Number(value.toFixed(4));
    range.value = value;
    range.style.setProperty("--share", `${50 + (50 * Math.max(-REACH, Math.min(REACH, value))) / REACH}%`);
    if (document.activeElement !== exact) exact.value = used;
  };
  return { root, sync, exact };
}

/** The editor below the graph: a hint until a state is chosen. */
export class Editor {
  constructor() {
    this.hint = html("div", { class: "soft" });
    this.title = html("b");
    this.lines = html("div", { class: "lines" });
    this.add = html("button", { type: "button", class: "small", onclick: () => addState(state.chosen) }, "Add one after it");
    this.remove = html("button", { type: "button", class: "small", onclick: () => removeState(state.chosen) }, "Remove");
    const close = html("button", { type: "button", class: "small quiet", onclick: () => update({ chosen: null }) }, "Done");
    this.panel = html(
      "div",
      { class: "panel", role: "group" },
      html("div", { class: "row head" }, this.title, this.add, this.remove, close),
      this.lines,
    );
    this.panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") update({ chosen: null });
    });
    this.root = html("div", { class: "editor" }, this.hint, this.panel);
    this.shape = -1;
  }

  build(d) {
    if (this.shape === d) return;
    this.shape = d;
    this.reward = line("reward r", (value) => setReward(state.chosen, value));
    this.features = Array.from({ length: d }, (_, k) =>
      line(`feature x${k + 1}`, (value) =>
        setFeatures(
          state.chosen,
          processOf(state).features[state.chosen].map((x, i) => (i === k ? value : x)),
        ),
      ),
    );
    this.lines.replaceChildren(this.reward.root, ...this.features.map(({ root }) => root));
  }

  /** Puts the keyboard into the reward. */
  focus() {
    this.reward?.exact.focus({ preventScroll: true });
    this.reward?.exact.select();
  }

  draw(process, chosen) {
    const open = chosen !== null && chosen < process.P.length;
    this.hint.hidden = open;
    // Only features in the plane are places.
    const drag = process.features[0].length === 2 ? " Drag it, or press arrow keys, to move its features." : "";
    write(
      this.hint,
      `<p>Inside a state its estimate after this layer, around it the exact value; the wider an arrow, the likelier.</p><p>Click a state to edit it.${drag}</p>`,
    );
    this.panel.hidden = !open;
    if (!open) return;
    this.build(process.features[0].length);
    this.title.textContent = `State ${letter(chosen)}`;
    this.panel.setAttribute("aria-label", `State ${letter(chosen)}, exact value ${num(process.values[chosen])}`);
    this.reward.sync(process.rewards[chosen]);
    this.features.forEach(({ sync }, k) => sync(process.features[chosen][k]));
    this.add.disabled = process.P.length >= MOST_STATES;
    this.remove.disabled = process.P.length <= 2;
  }
}
