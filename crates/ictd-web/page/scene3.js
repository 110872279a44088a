// Scene 3: train it. Settings in sentences, a card per seed, and lines of what is measured.

import { button, choice, section, slider } from "ictd/controls";
import { html, most, ramp } from "ictd/draw";
import { say } from "ictd/explain";
import { BRANCHES, SeedCard, solution } from "ictd/seedcard";
import { redraw, state, update } from "ictd/state";
import { stepInto } from "ictd/stepinto";
import { dark } from "ictd/theme";
import { TrainLines } from "ictd/trainlines";
import { KERNELS, MASKS, MOST_SEEDS, QUERIES, Run, SIGNS, commandOf, overridesOf, paperPatch, wilson } from "ictd/training";

const WORDS = `
<h2>Train it</h2>
<p>Nobody writes V and A by hand. A network begins with small random numbers and learns, on one random task after the other, to predict values by TD.</p>
<p>Two solutions appear. The <b class="td-text">TD block</b> is the one of scene 1: A compares like with like, and V's last row has the signs (+, +, −)
on reward, target and value. The <b class="mirror-text">mirror</b> has all signs turned: attention goes to what is <i>unlike</i>, and V subtracts where TD adds, so that most of it comes to the same.</p>
<p>Which one it is depends on what is asked. When the query is the <b>next state</b>, as the paper's equations say, rewards seen so far speak <i>against</i> its value, so the
sign of the reward turns first and pulls the others along: mirror. When the query is the <b>last source</b>, its own reward is in sight and counts for it: TD.</p>
<p class="soft">Change one sentence on the left and train again. “Step into” shows the trained layers at work in scene 1.</p>`;

/** Frames between two drawings of the lines: they are long, and eyes are slow. */
const EVERY = 80;
/** How long cards may take in a frame, milliseconds; those left wait for the next. */
const BUDGET = 7;

/** Features of the paper's tasks. */
const FEATURES = 4;
const TARGETS = { td: "The TD block", mirror: "The mirror" };

const parts = { cards: [] };
let run = null;
let drawn = 0;
let turn = 0;

function controls() {
  return [
    section(
      "What is learned",
      choice({
        field: "train.query",
        label: "The query is",
        options: QUERIES,
        hint: "As the last source it shows its reward; otherwise nothing reads from it",
      }),
      choice({ field: "train.signs", label: "The first signs are", options: SIGNS }),
      choice({ field: "train.mask", label: "Trained are", options: MASKS }),
    ),
    section(
      "How attention weighs",
      choice({ field: "train.kernel", label: "Weights come from the kernel", options: KERNELS }),
      slider({ field: "train.tau", label: "Scores are divided by τ", least: 0.1, most: 10, log: true, decimals: 2 }),
      slider({
        field: "train.rho",
        label: "Columns read from themselves ρ",
        least: 0,
        most: 0.95,
        step: 0.01,
        hint: "Diagonal mixing: a share ρ of the identity is added to attention",
      }),
    ),
    section(
      "How long",
      slider({ field: "train.tasks", label: "Tasks per seed", least: 100, most: 6000, step: 100 }),
      slider({ field: "train.seeds", label: "Seeds", least: 1, most: MOST_SEEDS, step: 1 }),
    ),
    button("Back to the paper's setting", () => update(paperPatch()), { className: "small" }),
  ];
}

/** TD · mirror · neither, with intervals. */
function counter() {
  const boxes = {};
  const root = html("div", { class: "counter", role: "group", "aria-label": "Seeds by where they end" });
  for (const [branch, name] of Object.entries(BRANCHES)) {
    const count = html("b", { "data-count": branch });
    const interval = html("small");
    root.append(html("div", { class: `count ${branch}` }, html("span", {}, name), count, interval));
    boxes[branch] = { count, interval };
  }
  const draw = (counts, all) => {
    for (const [branch, { count, interval }] of Object.entries(boxes)) {
      const [low, high] = all > 0 ? wilson(counts[branch], all) : [0, 1];
      count.textContent = counts[branch];
      count.dataset.value = counts[branch];
      interval.textContent = all > 0 ? `${low.toFixed(2)}–${high.toFixed(2)}` : "";
      interval.title = "95 % interval of the share (Wilson)";
      Object.assign(interval.dataset, { low, high });
    }
  };
  return { root, draw };
}

function start() {
  run?.forget();
  run = new Run(overridesOf(state), state["train.seeds"]);
  while (parts.cards.length > run.seeds.length) parts.cards.pop().root.remove();
  while (parts.cards.length < run.seeds.length) {
    const seed = parts.cards.length;
    const card = new SeedCard({ key: seed, name: `Seed ${seed}`, enter: () => into(seed) });
    parts.cards.push(card);
    parts.row.append(card.root);
    parts.watch.observe(card.root);
  }
  parts.failure.hidden = true;
  drawn = 0;
  run.ended.then(() => {
    drawn = 0;
    if (state.scene === "train") update({ hover: null });
  });
  draw(state, new Set(["room"]));
}

async function into(seed) {
  try {
    const entry = run.seeds[seed];
    const after = entry.done ? "" : ` after ${entry.epoch} tasks`;
    stepInto(await run.modelOf(entry), `seed ${seed} as trained in scene 3${after}, ${BRANCHES[entry.branch]}`);
  } catch (error) {
    parts.failure.textContent = error.message;
    parts.failure.hidden = false;
  }
}

function mount() {
  parts.train = html(
    "button",
    { type: "button", class: "main", id: "train", onclick: () => (run?.running ? run.stop() : start()) },
    "Train",
  );
  parts.words = html("p", { class: "words" });
  parts.time = html("output", { class: "time", id: "train-time" });
  parts.counter = counter();
  parts.failure = html("p", { class: "failure", role: "alert", hidden: true });
  parts.scale = html("p", { class: "scales soft" });
  parts.row = html("div", { class: "seed-row", tabindex: 0, role: "group", "aria-label": "Seeds" });
  parts.more = html("b", { id: "more-seeds", hidden: true }, "Scroll the cards to see all seeds.");
  const fits = (row) => row.scrollHeight <= row.clientHeight + 4 && row.scrollWidth <= row.clientWidth + 4;
  parts.watch = new ResizeObserver(() => {
    parts.more.hidden = fits(parts.row);
  });
  parts.watch.observe(parts.row);
  parts.targets = Object.entries(TARGETS).map(([branch, name]) => {
    const { V, A } = solution(branch, FEATURES);
    return { branch, card: new SeedCard({ key: branch, name, enter: () => stepInto({ params: { V, A } }, name) }) };
  });
  parts.empty = html(
    "div",
    { class: "late" },
    html("p", {}, "Press Train: networks learn from random tasks, in workers of this browser. These are the two solutions to look for."),
    html("div", { class: "seed-row" }, ...parts.targets.map(({ card }) => card.root)),
  );
  parts.refusal = html("p", { class: "soft same", hidden: true });
  parts.lines = new TrainLines();
  parts.command = html("code", { id: "train-command" });
  const lines = html("div", { class: "pair lines" }, ...parts.lines.roots.map((root) => html("section", { class: "card" }, root)));
  parts.late = html("div", { class: "late" }, parts.scale, parts.row, parts.refusal, lines);
  const bar = html(
    "section",
    { class: "card trainbar" },
    parts.train,
    html("div", { class: "said" }, parts.time, parts.words),
    parts.counter.root,
  );
  const same = html("p", { class: "soft same" }, "The same on the command line: ", parts.command);
  return { controls: controls(), picture: [bar, parts.failure, parts.empty, parts.late, same] };
}

/** Limits of colours are powers of two over all seeds: colours can be compared, and seldom jump. */
function limitsOf() {
  const up = (key) => 2 ** Math.ceil(Math.log2(Math.max(0.125, most(run.seeds.map((seed) => seed[key] ?? [])))));
  return { V: up("V"), A: up("A") };
}

function drawScales({ V, A }) {
  const said = `${V},${A},${dark()}`;
  if (parts.scaled === said) return;
  parts.scaled = said;
  const scale = (name, limit) => html("span", { class: "legend" }, html("b", {}, name), ` −${limit}`, ramp(true), `${limit}`);
  const names = html("span", {}, "rows and columns: features 1, 2, …, reward r, target t, value v");
  parts.scale.replaceChildren(scale("V₀", V), scale("A₀", A), names, parts.more);
}

/** Cards in turn, as many as fit into a frame; the others in the next. */
function drawCards(limits) {
  const began = performance.now();
  const all = parts.cards.length;
  for (let k = 0; k < all; k++) {
    const at = turn++ % all;
    if (parts.cards[at].draw(run.seeds[at], run.epochs, limits) && performance.now() - began > BUDGET) {
      redraw();
      return;
    }
  }
}

function drawBar() {
  const { seeds, epochs, running, seconds } = run;
  const least = Math.min(...seeds.map(({ epoch }) => epoch));
  const name = running ? "Stop" : "Train";
  if (parts.train.textContent !== name) parts.train.textContent = name;
  const many = `${seeds.length} ${seeds.length === 1 ? "seed" : "seeds"}`;
  const words = running
    ? `${many}, task ${least} of ${epochs}`
    : run.left > 0
      ? `stopped at task ${least} of ${epochs}`
      : `${many}, ${epochs} tasks each`;
  // What moves all the time is not read out; how it ended is.
  parts.words.setAttribute("aria-live", running ? "off" : "polite");
  if (parts.words.textContent !== words) parts.words.textContent = words;
  const paper = Object.keys(run.overrides).length === 0 && seeds.length >= 5;
  const here = `${seconds.toFixed(1)} s`;
  const time = !running && run.left > 0 ? `Stopped after ${here}` : paper ? `One hour on an H100, here: ${here}` : `Here: ${here}`;
  if (parts.time.textContent !== time) parts.time.textContent = time;
  Object.assign(parts.time.dataset, { value: seconds, worked: run.worked, done: run.left === 0 });
  parts.time.title = "The paper, on its main experiment (five seeds): approximately one hour of wall-clock time on a single NVIDIA H100";
  const refusal = seeds.find((seed) => seed.refusal)?.refusal;
  parts.refusal.hidden = !refusal;
  parts.refusal.textContent = `These cannot be stepped into: ${refusal}.`;
  const counts = run.counts();
  parts.counter.draw(counts, counts.td + counts.mirror + counts.none);
  if (run.failure && parts.failure.textContent !== run.failure) {
    parts.failure.textContent = run.failure;
    parts.failure.hidden = false;
  }
}

function draw(now) {
  say(WORDS);
  parts.empty.hidden = run !== null;
  parts.late.hidden = run === null;
  const command = commandOf(
    run && run.running ? run.overrides : overridesOf(now),
    run && run.running ? run.seeds.length : now["train.seeds"],
  );
  if (parts.command.textContent !== command) parts.command.textContent = command;
  if (!run) {
    parts.counter.draw({ td: 0, mirror: 0, none: 0 }, 0);
    parts.words.textContent = "The paper's main experiment took about one hour on an H100.";
    for (const { branch, card } of parts.targets) card.draw(solution(branch, FEATURES), 1, { V: 1, A: 1 });
    return;
  }
  const limits = limitsOf();
  drawScales(limits);
  drawCards(limits);
  drawBar();
  const time = performance.now();
  if (run.running && time - drawn < EVERY) return;
  drawn = time;
  parts.lines.draw(run);
}

export const scene = { key: "train", name: "Train it", title: "train it", mount, draw, leave: () => {} };
