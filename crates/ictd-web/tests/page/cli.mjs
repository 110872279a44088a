// The command line beside the page: the same question, and whether the answers are the same.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Digits that may differ: WebAssembly has no fused multiply-add, so that sums are rounded elsewhere. */
export const RELATIVE = 1e-12;

/** Runs `ictd` and gives what it prints as JSON; commands that refuse print it too. */
export function ictd(...args) {
  const { stdout, stderr, status } = spawnSync(process.env.ICTD, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  assert.ok(stdout.startsWith("{"), `ictd ${args.join(" ")}: ${status} ${stderr}`);
  return JSON.parse(stdout);
}

const flag = (name) => `--${name.replaceAll("_", "-")}`;
/** Options of a call of the page as flags. */
export const flags = (options) => Object.entries(options).flatMap(([name, value]) => (value === true ? [flag(name)] : [flag(name), String(value)]));

/** `ictd COMMAND --input CONTEXT …`. */
export function onContext(folder, command, context, options) {
  const { params, ...others } = options;
  const file = join(folder, "context.json");
  writeFileSync(file, JSON.stringify(context));
  const extra = [];
  if (params) {
    writeFileSync(join(folder, "params.json"), JSON.stringify(params));
    extra.push("--params", join(folder, "params.json"));
  }
  return ictd(command, "--input", file, ...flags(others), ...extra, "--json");
}

/** Numbers within a relative error, relative to `scale` where numbers cancel. */
export function near(a, b, what, scale = Math.max(Math.abs(a), Math.abs(b))) {
  assert.ok(Math.abs(a - b) <= RELATIVE * scale, `${what}: ${a} is not ${b}`);
}

/** Everything the same, numbers up to rounding; `skip` names fields that may differ. */
export function same(a, b, what = "", skip = []) {
  if (typeof a === "number" && typeof b === "number") {
    // A number near 0 is what is left of others: an absolute error of their rounding.
    near(a, b, what, Math.max(1, Math.abs(a), Math.abs(b)));
  } else if (Array.isArray(a) && Array.isArray(b)) {
    assert.equal(a.length, b.length, `${what}: length`);
    a.forEach((x, i) => same(x, b[i], `${what}[${i}]`, skip));
  } else if (a && b && typeof a === "object" && typeof b === "object") {
    const keys = (x) => Object.keys(x).filter((key) => !skip.includes(key)).sort();
    assert.deepEqual(keys(a), keys(b), what);
    for (const key of keys(a)) same(a[key], b[key], `${what}.${key}`, skip);
  } else {
    assert.equal(a, b, what);
  }
}
