// What scene 1 says about a number: the formula, and the formula with its numbers.

import { exact, num } from "ictd/draw";
import { products, term } from "ictd/explain";
import { ofLayer, readOf, updateOf } from "ictd/model";

/** The token j, with its state's name. */
export const token = (m, j) => `s<sub>${j}</sub>`;
const named = (m, j) => `token ${j}, state ${m.names[j]}${m.columns[j].source ? "" : m.columns[j].terminal ? ", terminal" : ", the query"}`;
const v = (l, m, j) => `v<sub>${l}</sub>(${token(m, j)})`;
const blue = (text) => `<span class="attention-text">${text}</span>`;
const orange = (text) => `<span class="td-text">${text}</span>`;

/** The number of the source that column j is, or −1. */
const sourceAt = (m, j) => m.sources.indexOf(j);

/** A cell of Z_l. */
export function tokenCell(m, l, row, j) {
  const value = m.result.tokens[l][row][j];
  const title = `${named(m, j)}: ${num(value)}`;
  if (row < m.d)
    return {
      title,
      lines: [`x<sub>${row + 1}</sub>(${m.names[j]}) = ${num(value)}`],
      note: m.plain ? "A feature of the state. Layers do not change it." : "A feature of the state, and what layers added to it.",
    };
  if (row === m.d) {
    if (!m.plain) return { title, lines: [num(value)], note: "The reward, and what layers added to it." };
    const paid = m.columns[j].source
      ? `The reward that was paid on leaving ${token(m, j)}. Layers do not change it.`
      : "Nothing was paid yet: the query asks for a value.";
    return { title, lines: [`r<sub>${j}</sub> = ${num(value)}`], note: paid };
  }
  if (row === m.d + 1) return target(m, l, j, title, value);
  if (l === 0) return { title, lines: [`${v(0, m, j)} = 0`], note: "Values begin at 0." };
  return valueStep(m, l, j);
}

function target(m, l, j, title, value) {
  const note =
    "The target memory: the shift moves every value one column to the left, times γ, so the next layer finds the successor's value beside the reward.";
  if (!m.columns[j].source) return { title, lines: [`${num(value)}`], note: "Only tokens that were left have a successor to look at." };
  const next = m.result.tokens[l].at(-1)[j + 1];
  if (!m.plain) return { title, lines: [num(value)], note };
  return { title, lines: [`γ·${v(l, m, j + 1)} = ${exact(m.gamma)}·${term(next)} = ${num(value)}`], note };
}

/** The value of column j after layer l, as attention and as TD write it. */
export function valueStep(m, l, j) {
  const before = m.result.attention[l - 1][j];
  const after = m.result.attention[l][j];
  const weights = ofLayer(m.allWeights, l);
  const errors = m.result.errors[l - 1];
  const title = `${named(m, j)}: ${num(after)}`;
  const lines = [];
  if (m.plain) {
    lines.push(`${v(l, m, j)} = ${v(l - 1, m, j)} + α Σ<sub>i</sub> K<sub>i${j}</sub>·δ<sub>i</sub>`);
    lines.push(`= ${num(before)} + ${exact(m.alpha)}·[${products(m.sources.map((_, i) => [weights[i][j], errors[i]]))}]`);
    lines.push(`= ${num(after)}`);
  } else {
    lines.push(`${num(before)} + update ${term(after - before)} = ${num(after)}`);
  }
  if (m.td?.[l]) lines.push(sides(after, m.td[l][j]));
  if (m.process) lines.push(`<span class="exact-text">exact value ${num(m.process.values[m.states[j]])}</span>`);
  return { title, lines };
}

/** Both sides' numbers, with all digits that can differ. */
function sides(attention, td) {
  return `${blue(`attention ${long(attention)}`)}<br>${orange(`TD ${long(td)}`)}<br>difference ${num(attention - td)}`;
}

const long = (value) => value.toPrecision(16).replace("-", "−");

/** The score of source i for column j. */
export function scoreCell(m, i, j) {
  const value = m.scores[i][j];
  const s = m.sources[i];
  const title = `Score of ${token(m, s)} (${m.names[s]}) for ${token(m, j)} (${m.names[j]}): ${num(value)}`;
  if (m.kernel === "tabular") return { title, lines: [num(value)], note: "The tabular kernel asks only whether two states are the same." };
  const apart = `(z<sub>${s}</sub> − z<sub>${j}</sub>)`;
  if (!m.plain)
    return {
      title,
      lines: [m.kernel === "rbf" ? `${apart}ᵀ A ${apart} = ${num(value)}` : `z<sub>${s}</sub>ᵀ A z<sub>${j}</sub> = ${num(value)}`],
      note: "A is a trained matrix here: it may compare rewards and memories too.",
    };
  const x = m.columns[s].x;
  const y = m.columns[j].x;
  if (m.kernel === "rbf") {
    const written = x.map((a, k) => `(${num(a)} − ${term(y[k])})²`).join(" + ");
    return {
      title,
      lines: [`‖x<sub>${s}</sub> − x<sub>${j}</sub>‖²`, `= ${written} = ${num(value)}`],
      note: "The smaller the distance, the more weight.",
    };
  }
  return {
    title,
    lines: [`x<sub>${s}</sub>ᵀ A x<sub>${j}</sub>, A the identity`, `= ${products(x.map((a, k) => [a, y[k]]))} = ${num(value)}`],
    note: "Features that point the same way score high.",
  };
}

/** How a kernel weighs a score: in words, and for a list of scores the part of one of them and the sum of all. */
const WEIGHING = {
  // Both are divided by the part itself, which may be too large or too small to be written.
  softmax: {
    rule: "w = exp(score/τ)",
    parts: (scores, i, tau) => [1, scores.reduce((sum, s) => sum + Math.exp((s - scores[i]) / tau), 0)],
    written: (score, tau) => `exp(${score} ÷ ${tau})`,
  },
  rbf: {
    rule: "w = exp(−score/(2τ))",
    parts: (scores, i, tau) => [1, scores.reduce((sum, s) => sum + Math.exp((scores[i] - s) / (2 * tau)), 0)],
    written: (score, tau) => `exp(−${score} ÷ (2·${tau}))`,
  },
  relu: {
    rule: "w = max(score, 0)",
    parts: (scores, i) => [Math.max(scores[i], 0), scores.reduce((sum, s) => sum + Math.max(s, 0), 0)],
    written: (score) => `max(${score}, 0)`,
  },
  elu1: {
    rule: "w = score/τ + 1 for a positive score, otherwise exp(score/τ)",
    parts: (scores, i, tau) => {
      const top = Math.min(0, Math.max(...scores));
      const weigh = (s) => (s > 0 ? s / tau + 1 : Math.exp((s - top) / tau));
      return [weigh(scores[i]), scores.reduce((sum, s) => sum + weigh(s), 0)];
    },
    written: (score, tau, positive) => (positive ? `(${score} ÷ ${tau} + 1)` : `exp(${score} ÷ ${tau})`),
  },
  tabular: {
    rule: "w = 1 for the same state, otherwise 0",
    parts: (scores, i) => [scores[i], scores.reduce((a, b) => a + b, 0)],
    written: (score) => score,
  },
};

/** K of source i for column j with its numbers, diagonal mixing included. */
function weighing(m, i, j) {
  const scores = m.sources.map((_, k) => m.scores[k][j]);
  const [score, tau] = [m.kernel === "rbf" ? term(scores[i]) : num(scores[i]), exact(m.tau)];
  const own = m.sources[i] === j;
  const mixed = (text) => (m.rho > 0 ? `(1 − ${exact(m.rho)})·${text}${own ? ` + ${exact(m.rho)}` : ""}` : text);
  const mixing = (text) => (m.rho > 0 ? `(1 − ρ)·${text}${own ? " + ρ" : ""}` : text);
  const end = `= ${num(m.weights[i][j])}`;
  const share = own || m.rho === 0 ? "" : " (+ ρ only where a column reads from itself)";
  if (m.kernel === "linear") {
    const n = m.sources.length;
    return [`K = ${mixing("score/(τ·n)")}${share}`, `= ${mixed(`${term(scores[i])} ÷ (${tau}·${n})`)}`, end];
  }
  const { rule, parts, written } = WEIGHING[m.kernel];
  const [part, sum] = parts(scores, i, m.tau);
  const lines = [`K = ${mixing("w ÷ Σ w over sources")}${share}`, `${rule} = ${written(score, tau, scores[i] > 0)}`];
  const many = Number.isFinite(sum) ? num(sum) : "more than 1e308";
  lines.push(sum === 0 ? "no source has any weight" : `= ${mixed(`${num(part)} ÷ ${many}`)}`, end);
  return lines;
}

/** The weight of source i in column j. */
export function weightCell(m, i, j) {
  const value = m.weights[i][j];
  const s = m.sources[i];
  const title = `${token(m, j)} (${m.names[j]}) reads ${num(value)} of ${token(m, s)} (${m.names[s]})`;
  const lines = weighing(m, i, j);
  const error = m.errors[i];
  if (m.plain) lines.push(`carries ${orange(`K·δ<sub>${s}</sub>`)} = ${num(value)}·${term(error)} = ${num(value * error)}`);
  return { title, lines, note: j === m.query ? "The query's column: it reads from all sources, and nothing reads from it." : "" };
}

/** An entry of V or A. */
export function paramCell(m, name, row, column) {
  const value = m[name][row][column];
  const [to, from] = [m.rows[row], m.rows[column]];
  const title = `${name}, ${to} and ${from}: ${num(value)}`;
  const product = m.kernel === "rbf" ? "squared distance" : "product";
  const reading = {
    rbf: `the score has ${num(value)} times the difference of ${to} times the difference of ${from}, of source and column`,
    tabular: "the tabular kernel does not use A: it asks whether two states are the same",
  }[m.kernel] ?? `the score has ${num(value)} times the source's ${to} times the column's ${from}`;
  if (name === "A")
    return {
      title,
      lines: [reading],
      note: m.plain && m.kernel !== "tabular" ? `A is the identity on features: the score is their ${product}.` : "",
    };
  const note = m.plain ? "Only value is written: reward plus target minus value, which is the TD error." : "";
  return { title, lines: [`a column's ${to} gets ${num(value)} times the ${from} of what it reads`], note };
}

/** A cell of V·Z. */
export function readCell(m, row, s) {
  const value = readOf(m)[row][s];
  if (value === null) return { title: named(m, s), lines: ["no column reads from it"] };
  const title = `What V reads from ${token(m, s)} (${m.names[s]}) for ${m.rows[row]}: ${num(value)}`;
  const uses = m.V[row].map((entry, k) => ({ entry, k })).filter(({ entry }) => entry !== 0);
  if (uses.length === 0) return { title, lines: ["this row of V is zero"] };
  const lines = [`V's row times z<sub>${s}</sub>`, `= ${products(uses.map(({ entry, k }) => [entry, m.before[k][s]]))} = ${num(value)}`];
  const note = !m.plain || row !== m.d + 2 ? "" : `1 on reward, 1 on target, −1 on value: this is the TD error δ<sub>${s}</sub>.`;
  return { title, lines, note };
}

/** A cell of α·V·Z·K. */
export function updateCell(m, row, j) {
  const value = updateOf(m)[row][j];
  const title = `What layer ${m.layer} adds to ${m.rows[row]} of ${token(m, j)}: ${num(value)}`;
  const uses = m.V[row].map((entry, k) => ({ entry, k })).filter(({ entry }) => entry !== 0);
  if (uses.length === 0)
    return {
      title,
      lines: ["this row of V is zero: nothing is added"],
      note: row === m.d + 1 ? "The shift writes this row afterwards." : "",
    };
  const read = readOf(m)[row];
  const lines = [
    `α Σ<sub>i</sub> K<sub>i${j}</sub>·(V z<sub>i</sub>)`,
    `= ${exact(m.alpha)}·[${products(m.sources.map((s, i) => [m.weights[i][j], read[s]]))}]`,
    `= ${num(value)}`,
  ];
  const note = !m.plain
    ? ""
    : `V's last row is (1, 1, −1) on reward, target and value: V z<sub>i</sub> = r<sub>i</sub> + γv(s<sub>i+1</sub>) − v(s<sub>i</sub>) = δ<sub>i</sub>.`;
  return { title, lines, note };
}

/** The TD error of source i. */
export function errorBar(m, j) {
  const i = sourceAt(m, j);
  if (i < 0) return { title: named(m, j), lines: ["no transition leaves it, so it has no TD error"] };
  const [reward, next, value] = [m.before[m.d][j], m.before[m.d + 1][j], m.before[m.d + 2][j]];
  const l = m.layer - 1;
  const lines = [
    `δ<sub>${j}</sub> = r<sub>${j}</sub> + γ·${v(l, m, j + 1)} − ${v(l, m, j)}`,
    `= ${num(reward)} + ${term(next)} − ${term(value)} = ${num(m.errors[i])}`,
  ];
  return { title: `TD error of ${named(m, j)}: ${num(m.errors[i])}`, lines, note: "How much better it went than the present values say." };
}

/** What source `from` adds to column j. */
export function contribution(m, from, j) {
  const i = sourceAt(m, from);
  if (i < 0) return valueStep(m, m.layer, j);
  const [weight, error] = [m.weights[i][j], readOf(m).at(-1)[from]];
  const read = m.plain ? `δ<sub>${from}</sub>` : `(V z<sub>${from}</sub>)`;
  return {
    title: `From ${token(m, from)} (${m.names[from]}) into ${token(m, j)} (${m.names[j]}): ${num(weight * error)}`,
    lines: [`K<sub>${from},${j}</sub>·${read} = ${num(weight)}·${term(error)} = ${num(weight * error)}`],
    note: `All of them together, times α, move the value from ${num(m.before.at(-1)[j])} to ${num(m.after.at(-1)[j])}.`,
  };
}

/** A state of the process. */
export function stateNode(m, s, estimate) {
  const { P, rewards, values, features } = m.process;
  const visits = m.states.filter((u) => u === s).length;
  const name = (u) => String.fromCharCode(65 + u);
  const ways = P[s].flatMap((p, u) => (p > 0 ? [`${exact(p)}·v(${name(u)})`] : [])).join(" + ");
  const numbers = P[s].flatMap((p, u) => (p > 0 ? [`${exact(p)}·${term(values[u])}`] : [])).join(" + ");
  return {
    title: `State ${name(s)}`,
    lines: [
      `<span class="exact-text">v(${name(s)}) = r + γ·[${ways}]</span>`,
      `= ${num(rewards[s])} + ${exact(m.gamma)}·[${numbers}] = ${num(values[s])}`,
      estimate === null ? "not on this trajectory, so it has no estimate" : `${blue(`estimate after layer ${m.layer}: ${num(estimate)}`)}`,
    ],
    note: `Features (${features[s].map((x) => num(x, 2)).join(", ")}); ${visits} of ${m.states.length} tokens.`,
  };
}
