// Scene 1's numbers: from the state to the process, the trajectory and the layers, all of them the engine's.

import { call } from "ictd/engine";
import { field, flag, number, unsaid, whole, word } from "ictd/state";
import { blockCodec, ownOptions } from "ictd/block";
import { ownCodec } from "ictd/own";

/** The processes that can be chosen. */
export const KINDS = [
  ["loop", "Loop"],
  ["ring", "Ring"],
  ["boyan", "Boyan's chain"],
  ["grid", "Grid"],
];
/** Where features come from. */
export const FEATURES = [
  ["plane", "on a circle or grid"],
  ["random", "random"],
  ["one-hot", "one per state"],
];
/** The kernels of attention. */
export const KERNELS = [
  ["softmax", "softmax"],
  ["relu", "relu"],
  ["elu1", "elu + 1"],
  ["rbf", "rbf (distance)"],
  ["linear", "linear"],
  ["tabular", "tabular (same state)"],
];
/** The algorithm that layers at θ_* are, by the engine's name. */
const PLAIN = "weighted softmax TD";
/** As many states as a graph can show. */
export const MOST_STATES = 16;

field("process", "loop", word(KINDS.map(([key]) => key)));
field("states", 5, whole(3, MOST_STATES));
field("seed", 3, whole(0, 99999));
field("features", "plane", word(FEATURES.map(([key]) => key)));
field("own", null, ownCodec);
field("gamma", 0.8, number(0, 0.999));
field("n", 12, whole(1, 60));
field("walk", 5, whole(0, 99999));
field("kernel", "softmax", word(KERNELS.map(([key]) => key)));
field("tau", 0.1, number(0.0001, 10000));
field("alpha", 1, number(0.0001, 100));
field("layers", 15, whole(1, 60));
// Whether feature vectors are divided by their lengths.
field("unit", false, flag);
field("layer", 1, whole(0, 60));
// A context that comes from somewhere else (`{context, label}`), and parameters other than θ_* (`{params, options, label}`).
field("window", null, unsaid);
field("block", null, blockCodec);
// What the pointer is on, which token was chosen (null: the query), and which state is being edited.
field("hover", null);
field("token", null, whole(0, 60));
field("chosen", null);

/** Remembers the last answer: most changes leave most of the chain as it was. */
function lasting(make) {
  let key = null;
  let value = null;
  return (...inputs) => {
    const now = JSON.stringify(inputs);
    if (now !== key) {
      value = make(...inputs);
      key = now;
    }
    return value;
  };
}

const generated = lasting((kind, states, seed, gamma, features) => call("process", { kind, states, seed, gamma, features }));
const valued = lasting((own, gamma) => {
  const process = { P: own.P, rewards: own.rewards, features: own.features, initial: own.initial, gamma };
  return { ...process, values: call("values", { process }).values };
});
const sampled = lasting((process, n, seed) => call("sample", { process, n, seed }));
const layered = lasting((context, options) => call("layers", { context, options }));

/** The process that is shown, with its exact values; null where the context comes from elsewhere. */
export function processOf(state) {
  if (state.window) return null;
  return state.own ? valued(state.own, state.gamma) : generated(state.process, state.states, state.seed, state.gamma, state.features);
}

/** The trajectory that is shown as a context, features as they are, and its states where the process is known. */
export function sampleOf(state) {
  const process = processOf(state);
  return process ? sampled({ ...process, values: undefined }, state.n, state.walk) : { context: state.window.context, states: null };
}

/** The context with feature vectors of length 1; what is zero stays zero. */
const united = lasting((context) => {
  const unit = (x) => {
    const length = Math.hypot(...x);
    return length > 0 ? x.map((entry) => entry / length) : x;
  };
  const inside = (part) => ({
    ...part,
    ...(part.features ? { features: part.features.map(unit) } : {}),
    ...(part.queries ? { queries: part.queries.map(unit) } : {}),
  });
  return { ...inside(context), ...(context.episodes ? { episodes: context.episodes.map(inside) } : {}) };
});

/** The options of a forward pass. */
export function optionsOf(state) {
  const options = { layers: state.layers, gamma: state.gamma, kernel: state.kernel, temperature: state.tau, step_size: state.alpha };
  return state.block ? { ...options, ...ownOptions(state.block) } : options;
}

/** The name of a process's state. */
export const letter = (s) => String.fromCharCode(65 + s);

/** Columns of a context: every state of every episode, then every query; sources are those that were left. */
function columnsOf(context) {
  const episodes = context.episodes ?? [context];
  const columns = [];
  for (const { features, rewards, terminated } of episodes) {
    features.forEach((x, k) =>
      columns.push({ x, source: k < rewards.length, reward: rewards[k] ?? null, terminal: Boolean(terminated) && k === rewards.length }),
    );
  }
  for (const x of context.queries ?? []) columns.push({ x, source: false, reward: null, terminal: false });
  return columns;
}

/** States are named by letters where the process is known, otherwise numbered in the order of their first visit. */
function namesOf(columns, states) {
  if (states) return states.map(letter);
  const seen = new Map();
  return columns.map(({ x }) => {
    const key = JSON.stringify(x);
    if (!seen.has(key)) seen.set(key, String(seen.size + 1));
    return seen.get(key);
  });
}

let last = null;

/**
 * Everything that scene 1 shows: `process`, `states` (of tokens), `columns`, `names`, `sources` (their columns), `result` (the engine's
 * `layers`) and, of the chosen layer l, what it reads and writes.
 */
export function model(state) {
  const process = processOf(state);
  const sample = sampleOf(state);
  const context = state.unit ? united(sample.context) : sample.context;
  const result = layered(context, optionsOf(state));
  if (last?.result !== result || last.process !== process) {
    const columns = columnsOf(context);
    const sources = columns.map((_, j) => j).filter((j) => columns[j].source);
    // The engine gives a row for every column; those that nothing reads from are zero and not shown.
    const rows = (matrices) => matrices.map((matrix) => sources.map((j) => matrix[j]));
    last = {
      process,
      result,
      columns,
      sources,
      context,
      states: sample.states,
      names: namesOf(columns, sample.states),
      d: columns[0].x.length,
      // The engine counts features from 0, readers from 1.
      rows: result.row_names.map((name) => name.replace(/^x(\d+)$/, (_, k) => `x${"₁₂₃₄₅₆₇₈₉"[k] ?? Number(k) + 1}`)),
      allWeights: rows(result.weights),
      allScores: rows(result.scores),
      sums: { reads: new Map(), updates: new Map() },
    };
  }
  const depth = result.tokens.length - 1;
  const layer = Math.max(1, Math.min(depth, state.layer));
  return Object.assign(last, {
    depth,
    layer,
    gamma: state.gamma,
    alpha: state.alpha,
    tau: state.tau,
    kernel: state.kernel,
    rho: state.block?.options?.diagonal_mix ?? 0,
    plain: result.algorithm === PLAIN,
    before: result.tokens[layer - 1],
    after: result.tokens[layer],
    weights: ofLayer(last.allWeights, layer),
    scores: ofLayer(last.allScores, layer),
    V: ofLayer(result.V, layer),
    A: ofLayer(result.A, layer),
    errors: result.errors[layer - 1],
    td: result.td,
    query: last.columns.length - 1,
    token: Math.min(state.token ?? Infinity, last.columns.length - 1),
  });
}

/** What layer l uses: its own, or what all layers share. */
export const ofLayer = (list, layer) => list[Math.min(list.length, layer) - 1];

/** What V reads from every column, V·Z, row by row (null where nothing reads): at θ_* its last row holds the TD errors. */
export function readOf(m) {
  return once(m, "reads", () =>
    m.V.map((row) => m.columns.map(({ source }, j) => (source ? row.reduce((sum, v, k) => sum + v * m.before[k][j], 0) : null))),
  );
}

/** What the layer adds before the shift, α·V·Z·K, row by row. */
export function updateOf(m) {
  return once(m, "updates", () =>
    readOf(m).map((row) => m.columns.map((_, j) => m.alpha * m.sources.reduce((sum, s, i) => sum + row[s] * m.weights[i][j], 0))),
  );
}

/** The sums that formulas write out are made once per layer; pictures that get the same list again are not filled again. */
function once(m, kind, make) {
  const kept = m.sums[kind];
  if (!kept.has(m.layer)) kept.set(m.layer, make());
  return kept.get(m.layer);
}

/** The estimate of a process's state after the layer: that of its first visit; null where the trajectory does not visit it. */
export function estimateOf(m, s) {
  const j = m.states.indexOf(s);
  return j < 0 ? null : m.result.attention[m.layer][j];
}
