"use strict";
// What the program computes, once more: the same numbers for the same runs.

/** The middle of sorted numbers: means of what is left when `cut` of them are cut off at either end. */
const cuts = {
  iqm: (n) => Math.floor(n / 4),
  median: (n) => Math.floor(Math.max(0, n - 1) / 2),
  mean: () => 0,
};

function centre(name, sorted) {
  const cut = cuts[name](sorted.length);
  const kept = sorted.slice(cut, sorted.length - cut);
  return kept.length ? kept.reduce((sum, x) => sum + x, 0) / kept.length : NaN;
}

/** Wilson's 95 % interval of a share. */
function wilson(successes, total) {
  const z = 1.959963984540054;
  const p = successes / total;
  const middle = p + (z * z) / (2 * total);
  const spread = z * Math.sqrt((p * (1 - p)) / total + (z * z) / (4 * total * total));
  const scale = 1 + (z * z) / total;
  // Exact at the ends, where rounding leaves something of them.
  return [successes === 0 ? 0 : Math.max(0, (middle - spread) / scale), successes === total ? 1 : Math.min(1, (middle + spread) / scale)];
}

/** The quantile of sorted numbers, interpolated linearly. */
function quantile(sorted, q) {
  const at = q * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/** A 95 % interval from 500 resamples, for runs that the program did not put together itself; the same every time. */
function resampled(name, sorted) {
  const n = sorted.length;
  if (n < 2 || n > 5000) return null;
  let state = 1;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const centres = [];
  for (let k = 0; k < 500; k++) {
    const drawn = Float64Array.from({ length: n }, () => sorted[Math.floor(uniform() * n)]).sort();
    centres.push(centre(name, drawn));
  }
  centres.sort((a, b) => a - b);
  return [quantile(centres, 0.025), quantile(centres, 0.975)];
}

/** A number in three digits. */
function short(x) {
  if (x === null || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  const text = x === 0 || (size >= 1e-3 && size < 1e5) ? String(Number(x.toPrecision(Math.max(3, String(Math.trunc(size)).length)))) : x.toExponential(1).replace("+", "");
  return text.replace(/-/g, "−");
}
