// Scales of scene 1: colours and axes stand still while layers go by, so that what moves is a value.

import { most } from "ictd/draw";

/** Values that grow by more than this over what they should be would hide everything that happens before. */
const RUNAWAY = 10;

/** The least and the largest of numbers, 0 among them, with room of `pad` shares at the ends that are not 0. */
export function range(numbers, pad = 0.08) {
  const flat = numbers.flat(3).filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...flat), Math.max(0, ...flat)];
  const room = pad * (high - low) || 1;
  return { least: low < 0 ? low - room : low, most: high > 0 ? high + room : high };
}

/** Puts scales on the model. Where layers diverge they follow the layer that is shown instead. */
export function scale(m) {
  const { attention, tokens, errors } = m.result;
  const exact = m.process?.values ?? [];
  const runs = most(attention) > RUNAWAY * most(exact, attention[1], tokens[0]);
  const last = runs ? m.layer : m.depth;
  if (m.scaled === m.result && m.scaledTo === last) return;
  const seen = attention.slice(0, last + 1);
  Object.assign(m, {
    scaled: m.result,
    scaledTo: last,
    valueLimit: most(seen, exact),
    valueRange: range([seen, exact]),
    tokenLimit: most(tokens.slice(0, last + 1)),
    errorLimit: most(errors.slice(0, last)),
    errorRange: range(errors.slice(0, last), 0.2),
    updateLimit: most(seen.slice(1).map((row, l) => row.map((value, j) => value - seen[l][j]))),
  });
}
