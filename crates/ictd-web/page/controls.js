// Controls: labelled, reachable with the keyboard, and bound to fields of the state.

import { html } from "ictd/draw";
import { tell } from "ictd/explain";
import { expected, reading, state, subscribe, update } from "ictd/state";

let count = 0;
const bound = [];

subscribe((_, changed) => {
  for (const { field, sync } of bound) if (changed.has(field)) sync();
});

/** Keeps a control in step with its field. */
function bind(field, sync) {
  bound.push({ field, sync });
  sync();
}

/** What was typed for a field; undefined, and a line that says what it may be, where it may not be that. */
function typed(field, label, input) {
  // Keyboards may write +1, 01 or 1e0.
  const value = input.value === "" ? undefined : reading(field, String(Number(input.value)));
  if (value === undefined) tell(`${label}: expected ${expected(field)}${input.value ? `, found ${input.value}` : ""}.`);
  return value;
}

/** A heading with the controls that belong to it. */
export function section(title, ...children) {
  return html("fieldset", { class: "section" }, html("legend", {}, title), ...children);
}

/**
 * A slider with a field for the number, which may be anything that the state's field may be. With `log` equal ways are equal factors;
 * `decimals` is how many digits are kept; `onset(patch)` makes the change, and `shown()` is the number that stands there, if not the
 * field's.
 */
export function slider({ field, label, least, most, step, log = false, decimals = null, hint = "", onset = update, shown = null }) {
  const id = `c${count++}`;
  const toSlider = log ? (value) => (1000 * Math.log(value / least)) / Math.log(most / least) : (value) => value;
  const round = (value) => (decimals === null ? value : Number(value.toPrecision(decimals)));
  const fromSlider = log ? (value) => round(least * (most / least) ** (value / 1000)) : (value) => Number(value.toFixed(6));
  const set = (value) => onset({ [field]: value });
  const now = shown ?? (() => state[field]);
  const range = html("input", {
    type: "range",
    id: `${id}r`,
    min: log ? 0 : least,
    max: log ? 1000 : most,
    step: log ? 5 : step,
    "aria-label": `${label}, slider`,
    oninput: (event) => set(fromSlider(Number(event.target.value))),
  });
  const exact = html("input", {
    type: "number",
    id,
    step: log ? "any" : step,
    onchange: ({ target }) => {
      const value = typed(field, label, target);
      if (value !== undefined) set(value);
      target.value = value ?? now();
    },
  });
  const name = html("label", { for: id }, label);
  const sync = () => {
    range.value = toSlider(now());
    range.style.setProperty("--share", `${(100 * (Number(range.value) - Number(range.min))) / (Number(range.max) - Number(range.min))}%`);
    range.setAttribute("aria-valuetext", String(now()));
    if (document.activeElement !== exact) exact.value = now();
  };
  bind(field, sync);
  if (shown) bind("own", sync);
  return html("div", { class: "control slider", title: hint }, name, exact, range);
}

/** A choice from a list of `[value, name]`. */
export function choice({ field, label, options, hint = "", onchange = null }) {
  const id = `c${count++}`;
  const list = html(
    "select",
    { id, onchange: (event) => (onchange ?? ((value) => update({ [field]: value })))(event.target.value) },
    ...options.map(([value, name]) => html("option", { value }, name)),
  );
  bind(field, () => {
    list.value = state[field];
  });
  return html("div", { class: "control choice", title: hint }, html("label", { for: id }, label), list);
}

/** Yes or no. */
export function check({ field, label, hint = "" }) {
  const id = `c${count++}`;
  const box = html("input", { type: "checkbox", id, onchange: (event) => update({ [field]: event.target.checked }) });
  bind(field, () => {
    box.checked = state[field];
  });
  return html("div", { class: "control check", title: hint }, box, html("label", { for: id }, label));
}

/** A button. */
export function button(label, onclick, { className = "", title = "" } = {}) {
  return html("button", { type: "button", class: className, title, onclick }, label);
}

/** A number with a drawing of lots beside it: "another one". */
export function seed({ field, label, hint = "", onset = update }) {
  const id = `c${count++}`;
  const exact = html("input", {
    type: "number",
    id,
    step: 1,
    onchange: ({ target }) => {
      const value = typed(field, label, target);
      if (value !== undefined) onset({ [field]: value });
      target.value = value ?? state[field];
    },
  });
  bind(field, () => {
    if (document.activeElement !== exact) exact.value = state[field];
  });
  const next = button("next", () => onset({ [field]: (state[field] + 1) % 100000 }), {
    className: "small",
    title: `${label}: the next one`,
  });
  return html("div", { class: "control seed", title: hint }, html("label", { for: id }, label), exact, next);
}
