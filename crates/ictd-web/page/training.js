// Training: seeds in workers, some epochs per message, and what is known of them so far.

import { lanes } from "ictd/engine";
import { field, number, redraw, state, whole, word } from "ictd/state";

/** Which state is asked about. */
export const QUERIES = [
  ["next", "the next state"],
  ["skip", "one state later"],
  ["stationary", "drawn independently"],
  ["source", "the last source"],
];
/** The signs that parameters begin with. */
export const SIGNS = [
  ["random", "drawn at random"],
  ["td", "those of TD"],
  ["mirror", "those of the mirror"],
];
/** Kernels with which training is possible. */
export const KERNELS = [
  ["softmax", "softmax"],
  ["linear", "linear"],
  ["relu", "relu"],
  ["elu1", "elu + 1"],
  ["rbf", "rbf (distance)"],
];
/** Which entries are trained. */
export const MASKS = [
  ["full", "the paper's entries"],
  ["relaxed", "also A beyond features"],
  ["none", "all entries"],
  ["looped", "only what TD needs"],
];
/** Most seeds at once. */
export const MOST_SEEDS = 20;

// What the paper's setting has: fields that are as here are not said to the engine.
const PAPER = { query: "next", signs: "random", kernel: "softmax", mask: "full", rho: 0, tau: 1.2, tasks: 3000 };
const CODECS = {
  query: word(QUERIES.map(([key]) => key)),
  signs: word(SIGNS.map(([key]) => key)),
  kernel: word(KERNELS.map(([key]) => key)),
  mask: word(MASKS.map(([key]) => key)),
  rho: number(0, 0.95),
  tau: number(0.01, 100),
  tasks: whole(1, 20000),
};
for (const [name, codec] of Object.entries(CODECS)) field(`train.${name}`, PAPER[name], codec);
field("train.seeds", 5, whole(1, MOST_SEEDS));

/** The settings that put all back to the paper's. */
export const paperPatch = () => Object.fromEntries(Object.entries(PAPER).map(([name, value]) => [`train.${name}`, value]));

/** What differs from the paper's setting, by the keys of `ictd pretrain --set`. */
export function overridesOf(now) {
  const said = {};
  const differs = (name) => now[`train.${name}`] !== PAPER[name];
  if (differs("query")) said.query = now["train.query"];
  if (differs("signs")) said.init = { value_sign: now["train.signs"], score_sign: now["train.signs"] };
  if (differs("kernel")) said.kernel = now["train.kernel"];
  if (differs("mask")) said.mask = now["train.mask"];
  if (differs("rho")) said.rho = { start: now["train.rho"], end: now["train.rho"] };
  if (differs("tau")) said.temperature = now["train.tau"];
  if (differs("tasks")) said.epochs = now["train.tasks"];
  return said;
}

/** The same as a command. */
export function commandOf(overrides, seeds) {
  const pairs = (table, prefix) =>
    Object.entries(table).flatMap(([key, value]) =>
      typeof value === "object" ? pairs(value, `${prefix}${key}.`) : [`--set ${prefix}${key}=${value}`],
    );
  return ["ictd pretrain", ...pairs(overrides, ""), `--seeds 0..${seeds}`].join(" ");
}

/** What is measured after every epoch, in the order in which it is kept. */
export const METRICS = ["reward", "target", "value", "v_em", "a_em", "d_t", "loss"];
/** Points of a line: as many as can be told apart. Each is the mean of the epochs that it stands for. */
const POINTS = 100;
/** How long a message should take, seconds: a worker is never far from being told to stop, and rarely waits for the page. */
const MESSAGE = 0.03;
/** Requests of a lane that are under way: one is worked on while the answer to the other is read. */
const HANDS = 2;

/** Some seeds in training. */
export class Run {
  constructor(overrides, count) {
    Object.assign(this, {
      overrides,
      epochs: overrides.epochs ?? PAPER.tasks,
      stopped: false,
      failure: null,
      pace: 4,
      seconds: 0,
      worked: 0,
      began: performance.now(),
    });
    this.points = Math.min(POINTS, this.epochs);
    this.seeds = Array.from({ length: count }, (_, seed) => ({
      seed,
      lane: lanes[seed % lanes.length],
      id: null,
      epoch: 0,
      done: false,
      branch: null,
      V: null,
      A: null,
      model: null,
      refusal: null,
      result: null,
      failure: null,
      sums: METRICS.map(() => new Float64Array(this.points)),
      counts: new Uint32Array(this.points),
      version: 0,
    }));
    this.left = this.seeds.length;
    this.ended = Promise.all([...new Set(this.seeds.map(({ lane }) => lane))].map((lane) => this.work(lane)));
  }

  get running() {
    return !this.stopped && this.left > 0;
  }

  /** Seeds of a lane take turns, so that all are about equally far. */
  async work(lane) {
    const queue = this.seeds.filter((seed) => seed.lane === lane);
    const hand = async () => {
      for (let seed = queue.shift(); seed && !this.stopped; seed = queue.shift()) {
        await this.turn(seed);
        if (!seed.done && !seed.failure) queue.push(seed);
        else this.finish();
      }
    };
    await Promise.all(Array.from({ length: HANDS }, hand));
  }

  async turn(seed) {
    try {
      if (seed.id === null) {
        const opened = await seed.lane.call("train_open", { overrides: this.overrides, seed: seed.seed });
        seed.id = opened.id;
      }
      const { value, seconds } = await seed.lane.timed("train_advance", { id: seed.id, epochs: this.pace });
      this.worked += seconds;
      this.pace = Math.max(1, Math.min(1000, Math.round(this.pace * Math.min(2, Math.max(0.5, MESSAGE / Math.max(seconds, 1e-4))))));
      this.take(seed, value);
      if (value.done) await this.close(seed);
    } catch (error) {
      // A lane that was ended says so; that is no failure of the seed.
      if (!this.stopped) seed.failure = error.message;
    }
    seed.version++;
    this.seconds = (performance.now() - this.began) / 1000;
    // Other scenes need no frame for what they do not show.
    if (state.scene === "train") redraw();
  }

  take(seed, { epoch, done, history, V, A, branch }) {
    for (const entry of history) {
      const point = Math.min(this.points - 1, Math.floor(((entry.epoch - 1) * this.points) / this.epochs));
      const [reward, target, value] = entry.coefficients;
      [reward, target, value, entry.v_em, entry.a_em, entry.d_t, entry.loss].forEach((number, k) => {
        seed.sums[k][point] += number;
      });
      seed.counts[point]++;
    }
    Object.assign(seed, { epoch, done, V, A, branch });
  }

  /** What is left of a seed that is trained: its parameters, and its entry as the command line prints it. */
  async close(seed) {
    try {
      seed.model = await seed.lane.call("train_params", { id: seed.id });
    } catch (error) {
      seed.refusal = error.message;
    }
    seed.result = await seed.lane.call("train_result", { id: seed.id });
    seed.branch = seed.result.branch;
    seed.id = null;
  }

  finish() {
    this.left--;
    this.failure = this.seeds.find(({ failure }) => failure)?.failure ?? null;
  }

  stop() {
    this.stopped = true;
    redraw();
  }

  /** Forgets what the workers keep, once nothing is under way any more. */
  async forget() {
    this.stopped = true;
    await this.ended;
    for (const seed of this.seeds) if (seed.id !== null && !seed.done) seed.lane.call("train_close", { id: seed.id }).catch(() => {});
  }

  /** The parameters of a seed as they are now; rejects with a line where scene 1 cannot use them. */
  async modelOf(seed) {
    if (seed.refusal) throw new Error(seed.refusal);
    return seed.model ?? seed.lane.call("train_params", { id: seed.id });
  }

  /** Seeds by branch: `{td, mirror, none}`, of those that have begun. */
  counts() {
    const found = { td: 0, mirror: 0, none: 0 };
    for (const { branch } of this.seeds) if (branch) found[branch]++;
    return found;
  }

  /** A metric over epochs: `[[epoch, median, least, largest]]`, over the seeds that are that far. */
  line(metric) {
    const k = METRICS.indexOf(metric);
    const rows = [];
    for (let point = 0; point < this.points; point++) {
      const values = this.seeds
        .filter(({ counts }) => counts[point] > 0)
        .map(({ sums, counts }) => sums[k][point] / counts[point])
        .filter(Number.isFinite);
      if (values.length === 0) continue;
      values.sort((a, b) => a - b);
      const middle = values.length >> 1;
      const median = values.length % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
      rows.push([Math.ceil(((point + 1) * this.epochs) / this.points), median, values[0], values.at(-1)]);
    }
    return rows;
  }
}

/** The 95 % interval of a share, by Wilson. */
export function wilson(count, all) {
  const z = 1.959963984540054;
  const middle = (count + (z * z) / 2) / (all + z * z);
  const half = (z / (all + z * z)) * Math.sqrt((count * (all - count)) / all + (z * z) / 4);
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}
