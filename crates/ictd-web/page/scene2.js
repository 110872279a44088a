// Scene 2: does depth converge? Eigenvalues, errors over layers, the verdict and what would help.

import { Chart } from "ictd/chart";
import { button } from "ictd/controls";
import { certifyCommand, depthOf } from "ictd/depth";
import { html, num } from "ictd/draw";
import { say } from "ictd/explain";
import { Plane } from "ictd/plane";
import { layerControls } from "ictd/sections";
import { remember, state, update } from "ictd/state";
import { Verdict } from "ictd/verdict";

const WORDS = `
<h2>Does depth converge?</h2>
<p>A layer multiplies the error that is left by the matrix <b>J = I − α(M − γMP)</b>: M is the attention that states pay to states, P where they lead. More layers help
if every eigenvalue of J lies <b>inside the unit circle</b>; the one farthest out decides how fast.</p>
<p>The paper's Assumption 5.1 asks that every state pays more than (1+γ)/2 of its attention to itself. Then every layer contracts, by proof. Its own tasks are far from that,
and converge for another reason: flat attention is stable.</p>
<p>Sharp attention on raw features is not: a state with short features attends to a neighbour with longer ones instead of itself. <b>Features of length 1</b> repair that.</p>
<p class="soft">What is judged is θ_*, and that layers approach a limit; not that the limit is right.</p>`;

const TASK = {
  process: "boyan",
  states: 12,
  seed: 9,
  features: "random",
  own: null,
  window: null,
  gamma: 0.9,
  n: 60,
  walk: 0,
  kernel: "softmax",
  layers: 40,
  token: null,
  chosen: null,
};
/** Settings worth seeing. A score scale of 20 is a temperature of 1/20. */
const PRESETS = [
  { key: "paper", name: "The paper's task, smaller", patch: { tau: 1, alpha: 1, unit: false } },
  { key: "sharp", name: "Sharp kernel on raw features: no step size works", patch: { tau: 0.05, alpha: 1, unit: false } },
  { key: "unit", name: "The same, unit-norm features", patch: { tau: 0.05, alpha: 1, unit: true } },
  { key: "step", name: "Step too large", patch: { tau: 1, alpha: 6, unit: false } },
];

const parts = {};
let now = null;

function eigenvalue(index) {
  const [re, im] = now.spectrum.eigenvalues[index];
  const size = Math.hypot(re, im);
  const pace =
    size < 1
      ? `a part of the error shrinks to half in ${num(Math.log(2) / -Math.log(size), 1)} layers`
      : "a part of the error never shrinks";
  return {
    title: `Eigenvalue ${num(re)} ${im < 0 ? "−" : "+"} ${num(Math.abs(im))}i`,
    lines: [`size √(re² + im²) = ${num(size, 6)}`],
    note: `${size < 1 ? "Inside" : "Outside"} the unit circle: ${size > 0 ? pace : "a part of the error is gone after one layer"}.`,
  };
}

function errorPoint({ series, index }) {
  const layer = parts.chart.data.series[series].points[index][0];
  const { error, bound } = now.spectrum;
  return {
    title: `After ${layer} ${layer === 1 ? "layer" : "layers"}`,
    lines: [`largest |v<sub>${layer}</sub> − v<sub>∞</sub>| = ${num(error[layer])}`, `proved to be at most ${num(bound[layer])}`],
    note: "v<sub>∞</sub> is what infinitely many layers would give.",
  };
}

function mount() {
  parts.plane = new Plane({ title: "Eigenvalues of J", className: "spectrum", explain: eigenvalue });
  parts.chart = new Chart({ title: "Error over layers", className: "depth", height: 330, left: 54, right: 20, explain: errorPoint });
  parts.verdict = new Verdict();
  parts.block = html("p", { class: "soft", hidden: true }, "Scene 1 has trained parameters at the moment; this scene is about θ_*.");
  const presets = html("div", { class: "presets", role: "group", "aria-label": "Examples" });
  parts.presets = PRESETS.map(({ key, name, patch }) => {
    const go = html(
      "button",
      { type: "button", "data-preset": key, onclick: () => (remember(`“${name}”`), update({ ...TASK, ...patch }, { step: true })) },
      name,
    );
    presets.append(go);
    return { go, patch: { ...TASK, ...patch } };
  });
  parts.command = html("code", { id: "certify-command" });
  const save = button("Save context.json", saveContext, { className: "small" });
  parts.same = html("p", { class: "soft same" }, "The same on the command line: ", parts.command, " ", save);
  const pictures = html(
    "div",
    { class: "pair" },
    html("section", { class: "card" }, parts.plane.root),
    html("section", { class: "card" }, parts.chart.root),
  );
  return { controls: layerControls(), picture: [presets, parts.block, pictures, parts.verdict.root, parts.same] };
}

function saveContext() {
  const address = URL.createObjectURL(new Blob([`${JSON.stringify(now.context)}\n`], { type: "application/json" }));
  html("a", { href: address, download: "context.json" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Powers of ten around all positive numbers; what is below the last digits is not shown. */
function extent(values) {
  const all = values.filter((value) => Number.isFinite(value) && value > 0);
  if (all.length === 0) return [1e-3, 1];
  const high = 10 ** Math.ceil(Math.log10(Math.max(...all)) + 1e-9);
  const low = 10 ** Math.floor(Math.log10(Math.max(Math.min(...all), 1e-16)));
  return [Math.min(low, high / 10), high];
}

function drawPictures({ spectrum, options }) {
  const eigenvalues = spectrum.eigenvalues ?? [];
  const reach = Math.min(3, Math.max(1, ...eigenvalues.map(([re, im]) => Math.hypot(re, im))));
  parts.plane.draw(eigenvalues, { reach });
  const largest = Math.max(0, ...eigenvalues.map(([re, im]) => Math.hypot(re, im)));
  parts.plane.picture.title(`Eigenvalues of J <small>largest size ${num(largest, 4)}</small>`);
  parts.plane.root.dataset.value = largest;
  parts.plane.root.dataset.norm = spectrum.norm_inf;
  const points = (list) => list.flatMap((value, layer) => (value === null ? [] : [[layer, value]]));
  const [least, most] = extent([...spectrum.error, ...spectrum.bound]);
  parts.chart.draw({
    x: { label: "layer", least: 0, most: options.layers, whole: true },
    y: { label: "error", least, most, log: true },
    series: [
      { key: "bound", name: "bound", className: "bound", points: points(spectrum.bound) },
      { key: "error", name: "error", className: "attention", points: points(spectrum.error), dots: 3 },
    ],
  });
  const known = spectrum.error.some((value) => value !== null);
  parts.chart.picture.title(
    `Distance to the limit <small>${known ? `<span class="attention-text">— error</span> - - proved bound` : "there is none"}</small>`,
  );
  parts.chart.picture.summary(
    known
      ? `Error over ${options.layers} layers, from ${num(spectrum.error[0])} to ${num(spectrum.error.at(-1))}, proved bound at the end ${num(spectrum.bound.at(-1))}`
      : "No error: there is no limit",
  );
}

function draw() {
  say(WORDS);
  now = depthOf(state);
  drawPictures(now);
  parts.verdict.draw(now);
  parts.block.hidden = !state.block;
  for (const { go, patch } of parts.presets) {
    const chosen = Object.entries(patch).every(([name, value]) => state[name] === value);
    go.setAttribute("aria-pressed", chosen);
  }
  const command = certifyCommand(now.options);
  if (parts.command.textContent !== command) parts.command.textContent = command;
  parts.same.dataset.context = JSON.stringify(now.context);
}

export const scene = { key: "depth", name: "Does depth converge?", title: "does depth converge?", mount, draw, leave: () => {} };
