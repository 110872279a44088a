// Controls: labelled, reachable with the keyboard, and bound to fields of the state.

import { html } from "ictd/draw";
import { state, subscribe, update } from "ictd/state";

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

/** A heading with the controls that belong to it. */
export function section(title, ...children) {
  return html("fieldset", { class: "section" }, html("legend", {}, title), ...children);
}

/**
 * A slider with a field for the number. With `log` equal ways are equal factors; `decimals` is how many digits are kept, `also`
 * what else changes with it.
 */
export function slider({ field, label, least, most, step, log = false, decimals = null, hint = "", also = {} }) {
  const id = `c${count++}`;
  const toSlider = log ? (value) => (1000 * Math.log(value / least)) / Math.log(most / least) : (value) => value;
  const round = (value) => (decimals === null ? value : Number(value.toPrecision(decimals)));
  const fromSlider = log ? (value) => round(least * (most / least) ** (value / 1000)) : (value) => Number(value.toFixed(6));
  const set = (value) => update({ [field]: value, ...also });
  const range = html("input", {
    type: "range",
    id: `${id}r`,
    min: log ? 0 : least,
    max: log ? 1000 : most,
    step: log ? 5 : step,
    "aria-label": `${label.replace(/<[^>]+>/g, "")}, slider`,
    oninput: (event) => set(fromSlider(Number(event.target.value))),
  });
  const exact = html("input", {
    type: "number",
    id,
    min: least,
    max: most,
    step: log ? "any" : step,
    onchange: (event) => {
      const value = Number(event.target.value);
      const whole = Number.isInteger(step) && !log;
      if (event.target.value !== "" && value >= least && value <= most) set(whole ? Math.round(value) : value);
      event.target.value = state[field];
    },
  });
  const name = html("label", { for: id });
  name.innerHTML = label;
  bind(field, () => {
    range.value = toSlider(state[field]);
    range.style.setProperty("--share", `${(100 * (Number(range.value) - Number(range.min))) / (Number(range.max) - Number(range.min))}%`);
    range.setAttribute("aria-valuetext", String(state[field]));
    if (document.activeElement !== exact) exact.value = state[field];
  });
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
export function seed({ field, label, hint = "", also = {} }) {
  const id = `c${count++}`;
  const exact = html("input", {
    type: "number",
    id,
    min: 0,
    max: 99999,
    step: 1,
    onchange: (event) => {
      const value = Number(event.target.value);
      if (event.target.value !== "" && Number.isInteger(value) && value >= 0 && value <= 99999) update({ [field]: value, ...also });
      event.target.value = state[field];
    },
  });
  bind(field, () => {
    if (document.activeElement !== exact) exact.value = state[field];
  });
  const next = button("next", () => update({ [field]: (state[field] + 1) % 100000, ...also }), {
    className: "small",
    title: `${label}: the next one`,
  });
  return html("div", { class: "control seed", title: hint }, html("label", { for: id }, label), exact, next);
}
