// Scene 1's right side: the layer as a step of TD.

import { num } from "ictd/draw";
import { readOf } from "ictd/model";
import { range } from "ictd/scales";

/** Draws TD errors, what they add to the chosen token, and values before and after. */
export function drawTd(parts, m, hover) {
  const names = m.names;
  const marked = hover.column;
  const l = m.layer;
  const { errors } = m;
  parts.errors.draw({
    columns: names,
    marked,
    layer: l,
    ...m.errorRange,
    table: [["token", "state", "δ"], ...errors.map((value, i) => [m.sources[i], names[m.sources[i]], value])],
    bars: errors.map((value, i) => ({ key: i, column: m.sources[i], from: 0, to: value, value, className: "td" })),
  });
  parts.errors.picture.title(`δ <small>TD errors: rᵢ + γ·v(sᵢ₊₁) − v(sᵢ)</small>`);
  parts.errors.picture.summary(
    `TD errors of ${errors.length} transitions before layer ${l}: ${errors.map((value) => num(value, 2)).join(", ")}`,
  );
  const j = marked ?? m.token;
  const bars = [];
  let sum = 0;
  const read = readOf(m).at(-1);
  m.sources.forEach((s, i) => {
    const value = m.weights[i][j] * read[s];
    bars.push({
      key: i,
      column: m.sources[i],
      from: sum,
      to: sum + value,
      value,
      className: hover.source !== undefined && hover.source >= 0 && hover.source !== i ? "td quiet" : "td",
      wide: true,
    });
    sum += value;
  });
  const end = names.length;
  bars.push({ key: "sum", column: end, from: 0, to: sum, value: sum, className: "attention", wide: true });
  parts.flow.draw({
    columns: [...names, "Σ"],
    marked: hover.source >= 0 ? m.sources[hover.source] : undefined,
    layer: l,
    bars,
    ...range(
      bars.map(({ to }) => to),
      0.15,
    ),
    table: [["token", "K·δ"], ...bars.map(({ column, value }) => [column === end ? "sum" : column, value])],
  });
  parts.flow.picture.title(
    `${m.plain ? "K·δ" : "K·(Vz)"} into ${names[j]} <small>${j === m.query ? "the query" : `token ${j}`}, source by source</small>`,
  );
  parts.flow.picture.summary(`Contributions to token ${j}: they sum to ${num(sum)}`);
  drawMoves(parts, m, marked);
}

function drawMoves(parts, m, marked) {
  const l = m.layer;
  const values = m.td ?? m.result.attention;
  const side = m.td ? "td" : "attention";
  parts.moves.draw({
    columns: m.names,
    marked,
    layer: l,
    ...m.valueRange,
    stems: values[l].map((after, j) => ({ key: `s${j}`, column: j, from: values[l - 1][j], to: after, className: side })),
    dots: [
      ...values[l - 1].map((at, j) => ({ key: `b${j}`, column: j, at, value: at, layer: l - 1, className: "hollow" })),
      ...values[l].map((at, j) => ({ key: `a${j}`, column: j, at, value: at, layer: l, className: side })),
    ],
    levels: m.process
      ? m.columns.map((_, j) => ({
          key: `e${j}`,
          column: j,
          at: m.process.values[m.states[j]],
          value: m.process.values[m.states[j]],
          className: "exact",
        }))
      : [],
    table: [
      ["token", "state", "before", "after", ...(m.process ? ["exact"] : [])],
      ...values[l].map((after, j) => [j, m.names[j], values[l - 1][j], after, ...(m.process ? [m.process.values[m.states[j]]] : [])]),
    ],
  });
  parts.moves.picture.title(
    `${m.plain ? "v + α·ΣK·δ" : "v"} <small>○ before <span class="${side}-text">● after</span> ${m.process ? '<span class="exact-text">— exact</span>' : ""}</small>`,
  );
  parts.moves.picture.summary(`Values before and after step ${l}`);
}
