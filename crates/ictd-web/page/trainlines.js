// Training as lines: medians over seeds, with their spread from the least to the largest.

import { Chart } from "ictd/chart";
import { num } from "ictd/draw";

const NAMES = { reward: "p_r", target: "p_t", value: "p_v", v_em: "V_em", a_em: "A_em", d_t: "d_t", loss: "δ²" };
const MEANINGS = {
  reward: "What V's last row takes of the reward. The TD block has a plus.",
  target: "What V's last row takes of the target memory, γ times the next value. The TD block has a plus.",
  value: "What V's last row takes of the present value. The TD block has a minus.",
  v_em: "How much V's last row looks like (1, 1, −1): 1 is the TD block; 0 where a sign is wrong.",
  a_em: "How much A's feature block looks like a positive multiple of the identity.",
  d_t: "How much attention columns pay to themselves, on average, in the first layer.",
  loss: "The mean squared TD error on a task that was not trained on.",
};

/** Four charts: which metrics each shows, with the class of their lines. */
const CHARTS = [
  {
    key: "coefficients",
    title: "V's last row",
    metrics: { reward: "attention", target: "exact", value: "td" },
    legend: `<span class="attention-text">— reward</span> <span class="exact-text">— target</span> <span class="td-text">— value</span>`,
  },
  {
    key: "scores",
    title: "Emergence",
    metrics: { v_em: "attention", a_em: "td" },
    legend: `<span class="attention-text">— V_em</span> <span class="td-text">— A_em</span>`,
    range: [0, 1],
  },
  { key: "diagonal", title: "d_t", metrics: { d_t: "attention" }, legend: "attention to oneself" },
  { key: "loss", title: "Loss", metrics: { loss: "td" }, legend: "δ² on a fresh task", log: true },
];

/** The extent of an axis, in steps coarse enough that it moves seldom. */
function extent(rows, { range, log }) {
  const all = rows
    .flatMap((row) => row.flatMap(([, , low, high]) => [low, high]))
    .filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (range || all.length === 0) return range ?? (log ? [0.1, 1] : [0, 1]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const half = (round, value) => 10 ** (round(Math.log10(value) * 2) / 2);
  if (log) return [half(Math.floor, low), half(Math.ceil, high)];
  const step = 2 ** Math.ceil(Math.log2(Math.max(high, -low, 1e-3))) / 4;
  return [Math.min(0, Math.floor(low / step) * step), Math.max(0, Math.ceil(high / step) * step)];
}

/** The charts of a run. */
export class TrainLines {
  constructor() {
    this.charts = CHARTS.map((kind) => {
      const chart = new Chart({
        title: kind.title,
        className: `train-${kind.key}`,
        height: 190,
        left: 44,
        right: 20,
        explain: (place) => this.explain(kind, place),
      });
      chart.picture.title(`${kind.title} <small>${kind.legend}</small>`);
      return { kind, chart };
    });
    this.roots = this.charts.map(({ chart }) => chart.root);
  }

  explain(kind, { series, index }) {
    const metric = Object.keys(kind.metrics)[series];
    const [epoch, median, low, high] = this.rows[metric][index];
    const seeds = this.run.seeds.length;
    return {
      title: `${NAMES[metric]} up to task ${epoch}: ${num(median)}`,
      lines: [seeds > 1 ? `median of ${seeds} seeds, from ${num(low)} to ${num(high)}` : "one seed"],
      note: MEANINGS[metric],
    };
  }

  draw(run) {
    this.run = run;
    this.rows = Object.fromEntries(Object.keys(NAMES).map((metric) => [metric, run.line(metric)]));
    for (const { kind, chart } of this.charts) {
      const names = Object.keys(kind.metrics);
      const [least, most] = extent(
        names.map((metric) => this.rows[metric]),
        kind,
      );
      const series = names.map((metric) => ({
        key: metric,
        name: NAMES[metric],
        className: kind.metrics[metric],
        points: this.rows[metric].map(([epoch, median]) => [epoch, median]),
        band: run.seeds.length > 1 ? this.rows[metric].map(([epoch, , low, high]) => [epoch, low, high]) : [],
      }));
      chart.draw({
        x: { label: "task", least: 0, most: run.epochs, whole: true },
        y: { label: kind.title, least, most, log: kind.log },
        series,
      });
      const last = (metric) => this.rows[metric].at(-1)?.[1];
      if (!run.running)
        chart.picture.summary(
          `${kind.title} over ${run.epochs} tasks, medians of ${run.seeds.length} seeds: ${names.map((metric) => `${NAMES[metric]} ends at ${num(last(metric))}`).join(", ")}`,
        );
    }
  }
}
