// Scene 4: your own. A log is understood first and then evaluated; a checkpoint is looked at; both lead to scene 1.

import { section, slider } from "ictd/controls";
import { html, num } from "ictd/draw";
import { Estimates } from "ictd/estimates";
import { say } from "ictd/explain";
import { Heat, matrixSummary } from "ictd/heat";
import { ROLES, evaluate, exampleLog, readCheckpoint, readLog, said, stop, windowOf } from "ictd/ownfile";
import { redraw, remember, state, update } from "ictd/state";
import { stepInto } from "ictd/stepinto";
import { Understood } from "ictd/understood";
import { Upload, isCheckpoint } from "ictd/upload";

const WORDS = `
<h2>Your own</h2>
<p>A <b>log</b> has a row per step: which episode, when, the state as one or more columns, the reward, and if you have it whether the episode ended there. The last row of an
episode that was cut short has no reward: it is where the last step led.</p>
<p>You first see how it was understood. <b>Evaluate</b> then gives what every state is worth, with intervals, and a judgement: trust it, be careful, or no.</p>
<p>A <b>checkpoint</b> is what “ictd pretrain” writes: V and A of a trained network, to look at and to step into.</p>
<p class="soft">Values are those of the policy that acted in the log, and the state must have all that matters for the future; nobody can check that for you.</p>`;

/** States that are shown, the most visited first. */
const SHOWN = 24;
/** The most transitions of a window: scene 1 shows them token by token. */
const WINDOW = 40;

/** What was typed for a window, a whole number; throws with a line where it is none. */
function counted(input, what, least, most) {
  const value = Number(input.value);
  if (input.value !== "" && Number.isInteger(value) && value >= least && value <= most) return value;
  throw new Error(`${what}: expected a whole number from ${least} to ${most}${input.value ? `, found ${input.value}` : ""}`);
}

const parts = {};
const shown = { log: null, checkpoint: null, working: null };
let turn = 0;

function tell(line) {
  parts.failure.textContent = line ?? "";
  parts.failure.hidden = !line;
}

/** Reads a file; what was shown before stays where it cannot be read. */
async function take(name, bytes, exact = null) {
  const mine = ++turn;
  try {
    if (isCheckpoint(name)) {
      const checkpoint = await readCheckpoint(name, bytes);
      if (mine === turn) Object.assign(shown, { checkpoint, log: null });
    } else {
      const log = await readLog(name, bytes, exact);
      if (mine === turn) Object.assign(shown, { log, checkpoint: null });
    }
    if (mine === turn) tell(null);
  } catch (error) {
    if (mine === turn) tell(error.message);
  }
  redraw();
}

function example() {
  try {
    const { name, bytes, exact } = exampleLog();
    update({ "log.gamma": exact.gamma });
    take(name, bytes, exact);
  } catch (error) {
    tell(error.message);
  }
}

async function run() {
  if (shown.working) {
    stop();
    return;
  }
  const { log } = shown;
  const gamma = state["log.gamma"];
  shown.working = performance.now();
  const clock = setInterval(() => state.scene === "own" && redraw(), 500);
  try {
    const evaluation = await evaluate(log);
    Object.assign(log, { evaluation, gamma });
    tell(null);
  } catch (error) {
    tell(error.message);
  }
  clearInterval(clock);
  shown.working = null;
  redraw();
}

/** Scene 1 on a window of the log, with the kernel that the evaluation chose, or one for features of about unit size. */
async function look() {
  const { log } = shown;
  try {
    const from = counted(parts.from, "the first transition", 0, log.understood.counts.transitions - 1);
    const { context } = await windowOf(log, from, counted(parts.count, "transitions of the window", 1, WINDOW));
    const { kernel, temperature } = log.evaluation?.chosen ?? {};
    const count = context.episodes.reduce((sum, { rewards }) => sum + rewards.length, 0);
    remember("the tokens of scene 1");
    const label = `${log.name}, ${count} transitions from number ${from} on`;
    update(
      {
        window: { context, label },
        block: null,
        kernel: kernel ?? "rbf",
        tau: Number((temperature ?? 1).toPrecision(3)),
        gamma: Math.min(0.999, state["log.gamma"]),
        layer: 1,
        token: null,
        chosen: null,
        hover: null,
        scene: "layer",
      },
      { step: true },
    );
    tell(null);
  } catch (error) {
    tell(error.message);
  }
}

function controls() {
  const again = () => shown.log && take(shown.log.name, shown.log.bytes, shown.log.exact);
  const role = (name) => {
    const id = `role-${name}`;
    const input = html("input", {
      type: "text",
      id,
      "data-column-of": name,
      placeholder: "guessed",
      onchange: () => ((said[name] = input.value.trim()), again()),
    });
    return html("div", { class: "control role" }, html("label", { for: id }, name), input);
  };
  const missing = html(
    "select",
    { id: "missing", onchange: () => ((said.missing = missing.value), again()) },
    ...[
      ["", "is refused"],
      ["drop", "leaves its row out"],
      ["mean", "becomes the mean"],
    ].map(([value, name]) => html("option", { value }, name)),
  );
  return [
    section("Evaluation", slider({ field: "log.gamma", label: "Discount γ", least: 0, most: 1, step: 0.01 })),
    section(
      "Which column is which",
      ...ROLES.map(role),
      html("div", { class: "control choice" }, html("label", { for: "missing" }, "A missing value"), missing),
    ),
  ];
}

function mountLog() {
  parts.understood = new Understood();
  parts.evaluate = html("button", { type: "button", class: "main", id: "evaluate", onclick: run });
  const number = (id, value, max, label) =>
    html("input", { type: "number", id, value, min: id === "from" ? 0 : 1, max, step: 1, "aria-label": label });
  parts.from = number("from", 0, 1e9, "first transition of the window");
  parts.count = number("count", 20, WINDOW, `transitions of the window, at most ${WINDOW}`);
  const see = html("button", { type: "button", id: "look", onclick: look }, "Look at a window in scene 1");
  const window = html("span", { class: "window" }, see, "from", parts.from, "on,", parts.count, "transitions");
  parts.log = html("section", { class: "card" }, parts.understood.root, html("div", { class: "buttons go" }, parts.evaluate, window));
  parts.status = html("span", { class: "status", id: "judgement" });
  parts.mean = html("p", { class: "sentence", id: "log-mean" });
  parts.reasons = html("ul", { class: "reasons" });
  parts.estimates = new Estimates();
  parts.result = html(
    "section",
    { class: "card verdict", id: "evaluation" },
    html("header", { "aria-live": "polite" }, parts.status, parts.mean),
    parts.reasons,
    parts.estimates.root,
  );
}

function mountCheckpoint() {
  const cell = (name, key) => (row, column) => ({
    title: `${name}, row ${row + 1}, column ${column + 1}: ${num(parts[key].data.values[row][column])}`,
    lines: [],
  });
  parts.V = new Heat({ title: "V₀", className: "file-v", left: 52, explain: cell("V₀", "V") });
  parts.A = new Heat({ title: "A₀", className: "file-a", left: 52, explain: cell("A₀", "A") });
  parts.fileName = html("h3");
  parts.fileWords = html("p", { id: "checkpoint-words" });
  const into = html(
    "button",
    { type: "button", class: "main", id: "step-into-file", onclick: () => stepInto(shown.checkpoint.model, shown.checkpoint.name) },
    "Step into scene 1",
  );
  parts.file = html(
    "section",
    { class: "card verdict" },
    parts.fileName,
    parts.fileWords,
    html("div", { class: "pair" }, parts.V.root, parts.A.root),
    html("div", { class: "buttons" }, into),
  );
}

function mount() {
  parts.upload = new Upload({ take, example, fail: tell });
  parts.failure = html("p", { class: "failure", id: "failure", role: "alert", hidden: true });
  mountLog();
  mountCheckpoint();
  return { controls: controls(), picture: [parts.upload.root, parts.failure, parts.log, parts.result, parts.file] };
}

function drawLog({ name, understood, evaluation, exact, gamma }) {
  if (parts.drawn !== understood) parts.understood.draw(name, understood);
  parts.drawn = understood;
  const seconds = shown.working ? ((performance.now() - shown.working) / 1000).toFixed(0) : 0;
  parts.evaluate.textContent = shown.working ? `Stop (${seconds} s)` : `Evaluate with γ = ${state["log.gamma"]}`;
  parts.result.hidden = !evaluation;
  if (!evaluation) return;
  const { judgement, reasons, mean, rows } = evaluation;
  if (parts.evaluation !== evaluation) {
    parts.evaluation = evaluation;
    parts.result.dataset.status = judgement;
    parts.status.textContent = judgement;
    parts.mean.textContent = mean
      ? `A new episode is worth ${num(mean.value)}, between ${num(mean.low)} and ${num(mean.high)} with 95 % confidence (γ = ${gamma}).`
      : "No values are given.";
    if (mean) Object.assign(parts.mean.dataset, { value: mean.value, low: mean.low, high: mean.high });
    parts.reasons.replaceChildren(...reasons.map((reason) => html("li", {}, reason)));
    const known = exact && exact.gamma === gamma;
    parts.rows = [...rows]
      .sort((a, b) => b.visits - a.visits)
      .slice(0, SHOWN)
      .map((row) => (known && exact.of(row) !== undefined ? { ...row, exact: exact.of(row) } : row));
    parts.estimates.root.hidden = rows.length === 0;
    const more = rows.length > SHOWN ? `the ${SHOWN} most visited of ${rows.length}; “copy numbers” has all` : `all ${rows.length} states`;
    parts.estimates.picture.title(`Values <small>${more}${known ? `, <span class="exact-text">exact values</span>` : ""}</small>`);
  }
  if (rows.length > 0) parts.estimates.draw({ rows: parts.rows, all: rows });
}

function drawCheckpoint({ name, model }) {
  const { params, options, warning, note } = model;
  const first = params.layers?.[0] ?? params;
  const d = first.V.length - 3;
  parts.fileName.textContent = name;
  const count = params.layers ? `${params.layers.length} layers with parameters of their own` : "one (V, A) for all layers";
  const trained = options.layers
    ? ` It was trained with L = ${options.layers}, γ = ${options.gamma}, kernel ${options.kernel}, τ = ${options.temperature}.`
    : "";
  parts.fileWords.textContent = `${d} features, ${count}.${trained}${warning ? ` ${warning}` : ""}${note ? ` Note: ${note}.` : ""}`;
  const names = [...Array.from({ length: d }, (_, k) => `x${"₁₂₃₄₅₆₇₈₉"[k] ?? k + 1}`), "reward", "target", "value"];
  for (const key of ["V", "A"]) {
    parts[key].draw({ values: first[key], rows: names, columns: names.map((text) => (text.length > 2 ? text[0] : text)), height: 20 });
    parts[key].picture.summary(matrixSummary(`${key} of the first layer`, first[key]));
  }
}

function draw() {
  say(WORDS);
  parts.log.hidden = !shown.log;
  parts.file.hidden = !shown.checkpoint;
  if (shown.log) drawLog(shown.log);
  else parts.result.hidden = true;
  if (shown.checkpoint) drawCheckpoint(shown.checkpoint);
}

// What is dropped on another scene would take the place of the page, unless a field takes it as text; a file is shown here instead.
const leaves = ({ dataTransfer, target }) =>
  state.scene !== scene.key && (dataTransfer.types.includes("Files") || !target.closest?.("input"));

addEventListener("dragover", (event) => leaves(event) && event.preventDefault());
addEventListener("drop", (event) => {
  if (!leaves(event)) return;
  event.preventDefault();
  const [file] = event.dataTransfer.files;
  if (!file) return;
  update({ scene: scene.key }, { step: true });
  // The scene is there after the next frame.
  requestAnimationFrame(() => requestAnimationFrame(() => parts.upload.read(file)));
});

export const scene = { key: "own", name: "Your own", title: "your own data", mount, draw, leave: () => {} };
