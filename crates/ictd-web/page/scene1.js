// Scene 1: a layer is a TD step. Above the process and its values, below the layer as attention and as TD.

import { Bars } from "ictd/bars";
import { Chart } from "ictd/chart";
import { html, num } from "ictd/draw";
import { Editor, removeState, setFeatures } from "ictd/editor";
import { say } from "ictd/explain";
import {
  contribution,
  errorBar,
  paramCell,
  readCell,
  scoreCell,
  stateNode,
  tokenCell,
  updateCell,
  valueStep,
  weightCell,
} from "ictd/formulas";
import { Graph } from "ictd/graph";
import { Heat, matrixSummary } from "ictd/heat";
import { Ledger } from "ictd/ledger";
import { estimateOf, letter, model, readOf, updateOf } from "ictd/model";
import { layerControls } from "ictd/sections";
import { state, update } from "ictd/state";
import { scale } from "ictd/scales";
import { origin } from "ictd/stepinto";
import { Stepper } from "ictd/stepper";
import { Strip } from "ictd/strip";
import { drawTd } from "ictd/tdlane";

const WORDS = `
<h2>A layer is a TD step</h2>
<p>The process on the left is never shown to the network. All it gets is the trajectory: features and rewards of the states it passed.</p>
<p><b class="attention-text">Attention</b> compares tokens, weighs them, and adds to each what V reads. <b class="td-text">TD learning</b> takes the
same weights and moves each value by a weighted mean of TD errors. Both columns below do the same arithmetic, and the
numbers agree to the last digits.</p>
<p>Step through the layers: values move towards the <b class="exact-text">exact ones</b>. They get there when attention is sharp (small τ) and the trajectory is long.</p>
<p class="soft">Point at any number, or use Tab and the arrow keys, to see where it comes from.</p>`;

/** The least width of a token in pixels, so that its numbers can be read: narrower screens scroll. */
const NARROW = 18;
/** Height of bars, pixels: that of the heat map beside them. */
const BAND = 136;

/** How scores are made, where it is not by a product of features. */
const SCORES = { rbf: "distances", tabular: "same state?" };

const otherWords = (known) => `
<h2>Inside trained parameters</h2>
<p>The same machine, with a V and an A that nobody wrote by hand. What V reads is no longer bound to be the TD error, and A may compare tokens in another way.</p>
<p>Compare row by row: where these parameters do what TD does, the numbers ${known ? 'move towards the <b class="exact-text">exact ones</b>' : "are TD's"}; the mirror block learns about <b class="td-text">reflected
transitions</b> instead. Where no algorithm corresponds, the right side shows TD errors of the values, and what each source really adds.</p>
<p class="soft">Point at any number to see where it comes from.</p>`;

const WINDOW_WORDS = `
<h2>A layer on your own tokens</h2>
<p>The tokens are a part of your log. Nothing is known of the process behind them, so there are no exact values to compare with.</p>
<p><b class="attention-text">Attention</b> compares tokens, weighs them, and adds to each what V reads. <b class="td-text">TD learning</b> takes the
same weights and moves each value by a weighted mean of TD errors: the numbers agree to the last digits.</p>
<p>The window is your data and no part of the address: a link opens the same settings without it.</p>
<p class="soft">Point at any number, or use Tab and the arrow keys, to see where it comes from.</p>`;

const parts = {};
let now = null;

const onColumn = (place) => update({ hover: place ? { column: place.column } : null });
const onCell = (place) => update({ hover: place ? { column: place.column, source: place.row } : null });
const onState = (place) => update({ hover: place ? { state: place.state } : null });

function build() {
  parts.stepper = new Stepper();
  parts.graph = new Graph({
    title: "The process",
    enter: onState,
    explain: (s) => stateNode(now, s, estimateOf(now, s)),
    move: setFeatures,
    remove: removeState,
    choose: (s) => {
      update({ chosen: s });
      requestAnimationFrame(() => requestAnimationFrame(() => parts.editor.focus()));
    },
  });
  parts.editor = new Editor();
  parts.values = new Chart({
    title: "Values, layer by layer",
    height: 430,
    right: 26,
    enter: (place) => update({ hover: place ? { column: now.shown[place.series >> 1] } : null }),
    explain: ({ series, index }) =>
      index === 0 ? tokenCell(now, 0, now.d + 2, now.shown[series >> 1]) : valueStep(now, index, now.shown[series >> 1]),
    onrule: (x) => parts.stepper.go(Math.round(x)),
  });
  parts.strip = new Strip({
    title: "The trajectory",
    narrow: NARROW,
    enter: onColumn,
    explain: (j) => valueStep(now, now.layer, j),
    choose: (j) => update({ token: j === now.query ? null : j }),
  });
  parts.before = new Heat({
    title: "Tokens read",
    className: "before",
    narrow: NARROW,
    enter: onColumn,
    explain: (row, j) => tokenCell(now, now.layer - 1, row, j),
  });
  for (const [name, title] of [
    ["A", "Score matrix A"],
    ["V", "Value matrix V"],
  ])
    parts[name] = new Heat({ title, className: `param ${name}`, explain: (row, column) => paramCell(now, name, row, column) });
  parts.scores = new Heat({ title: "Scores", className: "scores", enter: onCell, explain: (i, j) => scoreCell(now, i, j) });
  parts.weights = new Heat({ title: "Attention weights", className: "weights", enter: onCell, explain: (i, j) => weightCell(now, i, j) });
  parts.read = new Heat({ title: "What V reads", className: "read", enter: onColumn, explain: (row, j) => readCell(now, row, j) });
  parts.update = new Heat({ title: "Update", className: "update", enter: onColumn, explain: (row, j) => updateCell(now, row, j) });
  parts.after = new Heat({
    title: "Tokens written",
    className: "after",
    enter: onColumn,
    explain: (row, j) => tokenCell(now, now.layer, row, j),
  });
  parts.errors = new Bars({ title: "TD errors", className: "errors", height: BAND, enter: onColumn, explain: (j) => errorBar(now, j) });
  parts.flow = new Bars({
    title: "Contributions",
    className: "flow",
    height: BAND,
    enter: (place) => update({ hover: place ? { source: now.sources.indexOf(place.column) } : null }),
    explain: (j) => contribution(now, j, now.token),
  });
  parts.moves = new Bars({
    title: "Values before and after",
    className: "moves",
    height: BAND,
    enter: onColumn,
    explain: (j) => valueStep(now, now.layer, j),
  });
  parts.ledger = new Ledger({ enter: onColumn, explain: (j) => valueStep(now, now.layer, j) });
}

const card = (...children) => html("section", { class: "card" }, ...children);
const pair = (...children) => html("div", { class: "pair" }, ...children);

/** Both sides of a step: attention at the left, TD at the right. */
function sides(left, right) {
  const root = pair(card(left.root), card(right.root));
  root.firstChild.classList.add("attention-side");
  root.lastChild.classList.add("td-side");
  return root;
}

/** Pictures with the same columns are scrolled together. */
function together(...pictures) {
  for (const { frame } of pictures) {
    frame.addEventListener("scroll", () => {
      for (const other of pictures) if (other.frame.scrollLeft !== frame.scrollLeft) other.frame.scrollLeft = frame.scrollLeft;
    });
  }
}

function mount() {
  build();
  parts.top = pair(card(parts.graph.root, parts.editor.root), card(parts.values.root));
  together(parts.strip.picture, parts.before.picture);
  parts.other = html("h2", { class: "td-text" });
  const heads = html("div", { class: "pair lanes" }, html("h2", { class: "attention-text" }, "Attention"), parts.other);
  const picture = [
    origin(),
    parts.stepper.root,
    parts.top,
    card(parts.strip.root, parts.before.root),
    pair(card(parts.A.root), card(parts.V.root)),
    pair(card(parts.scores.root), card(parts.weights.root)),
    heads,
    sides(parts.read, parts.errors),
    sides(parts.update, parts.flow),
    sides(parts.after, parts.moves),
    parts.ledger.root,
  ];
  return { controls: layerControls(), picture };
}

/** The columns whose values are drawn as lines: the first visit of every state, or all columns where states are not known. */
function shownColumns(m) {
  const seen = new Set();
  return m.columns.map((_, j) => j).filter((j) => !m.columns[j].terminal && !seen.has(m.names[j]) && seen.add(m.names[j]));
}

function drawValues(m, limits, column) {
  const { attention, td } = m.result;
  const marked = column === undefined ? null : m.names[column];
  const series = m.shown.flatMap((j) => {
    const faint = marked !== null && m.names[j] !== marked ? "faint" : "";
    const points = (values) => values.slice(0, m.scaledTo + 1).map((row, l) => [l, row[j]]);
    return [
      { key: `${m.names[j]} attention`, points: points(attention), className: `attention ${faint}` },
      { key: `${m.names[j]} TD`, points: td ? points(td) : [], className: `td line-less ${faint}`, dots: 3 },
    ];
  });
  const levels = m.process
    ? m.shown.map((j) => ({
        key: m.names[j],
        kind: "exact",
        at: m.process.values[m.states[j]],
        name: m.names[j],
        className: `exact ${marked !== null && m.names[j] !== marked ? "faint" : ""}`,
      }))
    : [];
  parts.values.draw({
    x: { label: "layer", least: 0, most: m.depth, whole: true },
    y: { label: "value", ...limits },
    series,
    rule: m.layer,
    levels,
  });
}

function drawTop(m, hover) {
  const estimates = m.process?.P.map((_, s) => estimateOf(m, s));
  const column = hover.column ?? (hover.state === undefined ? undefined : m.states?.indexOf(hover.state));
  parts.top.firstChild.hidden = !m.process;
  if (m.process) {
    const marked = hover.state ?? (hover.column === undefined ? undefined : m.states[hover.column]);
    parts.graph.draw({
      process: m.process,
      names: m.process.P.map((_, s) => letter(s)),
      estimates,
      limit: m.valueLimit,
      chosen: state.chosen,
      marked,
    });
    parts.graph.picture.title("The process");
    parts.graph.picture.summary(
      `Process with ${m.process.P.length} states: ${m.process.P.map((_, s) => `${letter(s)} reward ${num(m.process.rewards[s], 2)}, exact ${num(m.process.values[s])}, estimate ${num(estimates[s])}`).join("; ")}`,
    );
    parts.editor.draw(m.process, state.chosen);
  }
  drawValues(m, m.valueRange, column < 0 ? undefined : column);
  parts.values.picture.title(
    `Values <small><span class="attention-text">— attention</span> ${m.td ? '<span class="td-text">• TD</span>' : ""} ${m.process ? '<span class="exact-text">- - exact</span>' : ""}</small>`,
  );
  parts.values.picture.summary(
    `Values of ${m.shown.length} states over ${m.depth} layers; after layer ${m.layer}: ${m.shown.map((j) => `${m.names[j]} ${num(m.result.attention[m.layer][j])}`).join(", ")}`,
  );
  parts.strip.draw({
    names: m.names,
    columns: m.columns,
    values: m.result.attention[m.layer],
    limit: m.valueLimit,
    layer: m.layer,
    marked: hover.column ?? m.token,
  });
  parts.strip.picture.title("The trajectory <small>all that the network is shown, token by token</small>");
}

function drawAttention(m, hover) {
  const names = m.names;
  const { rows } = m;
  const { column } = hover;
  const z = (l) => `Z<sub>${l}</sub>`;
  const common = { columns: names, rows, column };
  const lane = { ...common, height: 18 };
  parts.before.draw({ ...common, values: m.before, limit: m.tokenLimit, layer: m.layer - 1, outline: m.query });
  parts.before.picture.title(`${z(m.layer - 1)} <small>the same tokens as a matrix, as layer ${m.layer} reads them</small>`);
  for (const [name, says] of [
    ["A", "how tokens are compared"],
    ["V", "what is read from them"],
  ]) {
    parts[name].draw({ values: m[name], rows, columns: rows, height: 18 });
    parts[name].picture.title(`${name} <small>${says}</small>`);
    parts[name].picture.summary(matrixSummary(`${name}, ${says}`, m[name]));
  }
  const height = Math.max(7, Math.min(20, Math.floor(260 / m.sources.length)));
  const square = {
    columns: names,
    rows: m.sources.map((j) => names[j]),
    column,
    row: hover.source,
    height,
    outline: m.query,
    layer: m.layer,
  };
  parts.scores.draw({ ...square, values: m.scores });
  parts.scores.picture.title(`Scores <small>${SCORES[m.kernel] ?? (m.plain ? "xᵢᵀA xⱼ" : "zᵢᵀA zⱼ")}</small>`);
  parts.weights.draw({ ...square, values: m.weights });
  parts.weights.picture.title(`K <small>how much a column reads</small>`);
  parts.read.draw({ ...lane, values: readOf(m), limit: m.errorLimit, layer: m.layer });
  parts.read.picture.title(`V·${z(m.layer - 1)} <small>what V reads</small>`);
  parts.update.draw({ ...lane, values: updateOf(m), limit: m.updateLimit, layer: m.layer, outline: m.query });
  parts.update.picture.title(`α·V·${z(m.layer - 1)}·K <small>what is added</small>`);
  parts.after.draw({ ...lane, values: m.after, limit: m.tokenLimit, layer: m.layer, outline: m.query });
  parts.after.picture.title(`${z(m.layer)} <small>added, then shifted</small>`);
  for (const [part, name, values] of [
    ["before", "Tokens read", m.before],
    ["scores", "Scores", m.scores],
    ["weights", "Attention weights", m.weights],
    ["read", "What V reads", readOf(m)],
    ["update", "Update", updateOf(m)],
    ["after", "Tokens written", m.after],
  ]) {
    parts[part].picture.summary(matrixSummary(name, values));
  }
}

function draw() {
  const m = model(state);
  now = m;
  scale(m);
  m.shown = shownColumns(m);
  const hover = state.hover ?? {};
  parts.other.textContent = m.plain ? "TD learning" : (m.result.algorithm ?? "These parameters");
  parts.stepper.draw(m);
  drawTop(m, hover);
  drawAttention(m, hover);
  drawTd(parts, m, hover);
  const { attention, td } = m.result;
  const sides = [{ key: "attention", name: "attention", className: "attention-text", values: attention[m.layer] }];
  if (td) {
    sides.push({ key: "td", name: "TD", className: "td-text", values: td[m.layer] });
    sides.push({
      key: "difference",
      name: "difference",
      className: "soft",
      values: attention[m.layer].map((value, j) => Math.abs(value - td[m.layer][j])),
    });
  }
  parts.ledger.draw({ layer: m.layer, names: m.names, sides, marked: hover.column });
  say(!m.plain ? otherWords(m.process !== null) : m.process ? WORDS : WINDOW_WORDS);
}

export const scene = {
  key: "layer",
  name: "A layer is a TD step",
  title: "a layer is a TD step",
  mount,
  draw,
  leave: () => parts.stepper.stop(),
};
