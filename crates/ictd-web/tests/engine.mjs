// The engine, compiled to WebAssembly, gives the numbers of the command line, and answers whatever it is asked.
// Node only: node engine.mjs ENGINE.wasm ICTD PAGE.html

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { test } from "node:test";

const [wasm, ictd, page] = process.argv.slice(2);
const compiled = new WebAssembly.Module(readFileSync(wasm));
const folder = mkdtempSync(join(tmpdir(), "ictd-engine-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** An engine of its own: what it answers to bytes. */
function open() {
  const engine = new WebAssembly.Instance(compiled, {}).exports;
  const place = (bytes) => {
    const at = engine.reserve(bytes.length) >>> 0;
    assert.notEqual(at, 0);
    new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
    return at;
  };
  return (request, payload = new Uint8Array(0)) => {
    const [first, second] = [place(request), place(payload)];
    const at = engine.call(first, request.length, second, payload.length) >>> 0;
    const length = new DataView(engine.memory.buffer).getUint32(at, true);
    return JSON.parse(new TextDecoder().decode(new Uint8Array(engine.memory.buffer, at + 4, length)));
  };
}

const engine = open();

function call(name, fields = {}, payload) {
  const { value, error } = engine(new TextEncoder().encode(JSON.stringify({ call: name, ...fields })), payload);
  if (error !== undefined) throw new Error(error);
  return value;
}

/** What the command line prints; it exits with 3 where a result should not be used. */
function printed(args, environment = {}) {
  const env = { ...process.env, ...environment };
  try {
    return JSON.parse(execFileSync(ictd, [...args, "--json"], { env, stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 }));
  } catch (error) {
    if (error.status !== 3) throw error;
    return JSON.parse(error.stdout);
  }
}

function stored(name, content) {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const flags = (options) =>
  Object.entries(options).flatMap(([name, value]) => {
    const flag = `--${name.replaceAll("_", "-")}`;
    return value === true ? [flag] : [flag, String(value)];
  });

// Elementary functions of the two may differ in the last place, which thousands of operations carry on: 1e-12 of a number's size, or of
// what it is a difference of. Within a list that is its largest number; reports with residuals and differences of losses say how
// large their numbers are. Where a function is smallest, rounding shows by its root.
const MINIMUM = /\.steps\.best$/;

function same(found, expected, place, scale = 0) {
  if (typeof expected === "number" && typeof found === "number") {
    const slack = (MINIMUM.test(place) ? 1e-6 : 1e-12) * Math.max(Math.abs(expected), Math.abs(found), scale);
    assert.ok(Math.abs(found - expected) <= slack, `${place}: ${found}, expected ${expected}`);
    return;
  }
  if (expected === null || typeof expected !== "object") {
    assert.equal(found, expected, place);
    return;
  }
  assert.ok(found !== null && typeof found === "object", `${place}: ${found}`);
  assert.deepEqual(Object.keys(found), Object.keys(expected), place);
  const numbers = Object.values(expected).filter((x) => typeof x === "number").map(Math.abs);
  const largest = Math.max(scale, ...(Array.isArray(expected) ? numbers : []));
  for (const key of Object.keys(expected)) same(found[key], expected[key], `${place}.${key}`, largest);
}

/** The size of values and losses in certificates and evaluations here. */
const ONE = 1;

/** Contexts of several kinds and sizes. */
function* contexts() {
  // Random features: where states are alike, rounding decides which of them is named.
  for (const [kind, states, n] of [["boyan", 12, 40], ["loop", 7, 25], ["ring", 6, 30], ["grid", 9, 60]]) {
    const made = call("process", { kind, states, seed: 5, gamma: 0.9 });
    yield [`${kind}-${n}`, call("sample", { process: made, n, seed: 2 }).context];
  }
  const features = [[1, 2], [0.5, -1], [0, 0], [0.5, -1]];
  const episodes = [{ features, rewards: [1, 0, -1], terminated: true }, { features: features.slice(0, 2), rewards: [0.25] }];
  yield ["episodes", { episodes, queries: [[0.1, 0.2], [1, 2]] }];
}

test("forward is that of the command line", () => {
  for (const [name, context] of contexts()) {
    const input = stored(`${name}.json`, JSON.stringify(context));
    for (const options of [
      {},
      { layers: 7, gamma: 0.8, kernel: "rbf", temperature: 0.5, step_size: 0.7, tokens: true },
      { kernel: "linear", step_size: "0.5,0.25,0.125", layers: 3, block: "dual" },
      { kernel: "tabular", fixed_point: true, last: true },
      { diagonal_mix: 0.25, kernel: "elu1", layers: 4 },
      { temperature: 0.05, fixed_point: true, layers: 30 },
      { step_size: 1e200, layers: 9 },
    ]) {
      const sizes = typeof options.step_size === "string" ? { step_size: options.step_size.split(",").map(Number) } : {};
      const found = call("forward", { context, options: { ...options, ...sizes } });
      same(found, printed(["forward", "--input", input, ...flags(options)]), `${name} ${JSON.stringify(options)}`);
    }
  }
});

test("parameters are taken as from a file", () => {
  const [, context] = contexts().next().value;
  const input = stored("params-context.json", JSON.stringify(context));
  const { V: [V], A: [A] } = call("layers", { context });
  V[4][0] = 0.125;
  A[0][1] = -0.5;
  const params = { V, A };
  const file = stored("params.json", JSON.stringify(params));
  const found = call("forward", { context, options: { params, layers: 5, tokens: true } });
  same(found, printed(["forward", "--input", input, "--params", file, "--layers", "5", "--tokens"]), "params");
});

test("certificates and spectra are those of the command line", () => {
  for (const [name, context] of contexts()) {
    const input = stored(`certify-${name}.json`, JSON.stringify(context));
    for (const options of [{}, { temperature: 0.05, layers: 40 }, { unit_norm: true, step_size: 0.5, temperature: 0.05 }, { kernel: "tabular", gamma: 0.5 }, { kernel: "linear", step_size: 3 }]) {
      if (options.unit_norm && name === "episodes") continue;
      const place = `${name} ${JSON.stringify(options)}`;
      const found = call("certify", { context, options });
      const expected = printed(["certify", "--input", input, ...flags(options)]);
      // Suggestions that do equally well are in an order, and the last of them there or not, as rounding decides.
      const shared = ({ suggestions, suggestion, ...rest }, other) => {
        const both = suggestions.filter(({ change }) => other.suggestions.some((s) => s.change === change));
        assert.ok(both.length >= suggestions.length - 2, place);
        return { ...rest, suggestions: both.sort((a, b) => (a.change < b.change ? -1 : 1)) };
      };
      same(shared(found, expected), shared(expected, found), place, ONE);
      const spectrum = call("spectrum", { context, options });
      assert.equal(spectrum.norm_inf, found.contraction.norm_inf);
      assert.equal(spectrum.error.length, (options.layers ?? 15) + 1);
      const radius = Math.max(...spectrum.eigenvalues.map(([re, im]) => Math.hypot(re, im)));
      same(radius, found.contraction.spectral_radius, place);
      if (found.fixed_point) assert.equal(spectrum.error.at(-1), found.fixed_point.error_to_empirical_fixed_point_inf, place);
    }
  }
});

test("evaluations are those of the command line", () => {
  const process = call("process", { kind: "boyan", states: 8, seed: 1, gamma: 0.9 });
  const rows = ["episode,t,x,y,reward"];
  for (let episode = 0; episode < 12; episode++) {
    const { features, rewards } = call("sample", { process, n: 15, seed: episode }).context;
    features.forEach(([x, y], t) => rows.push([episode, t, x, y, rewards[t] ?? ""].join(",")));
  }
  const labels = rows.map((row, k) => (k === 0 ? "episode,t,state,reward" : row.replace(/^(\d+,\d+),([^,]*),[^,]*/, (_, head, x) => `${head},s${x.slice(0, 4)}`)));
  for (const [name, text] of [["features.csv", rows.join("\n")], ["labels.csv", labels.join("\n")]]) {
    const [input, payload] = [stored(name, text), new TextEncoder().encode(text)];
    for (const options of [{ gamma: 0.9 }, { gamma: 0.5, estimator: "lstd", compare: true }, { gamma: 0.9, temperature: 1, layers: 20, scale: "none", seed: 3 }]) {
      const found = call("evaluate", { name: input, options }, payload);
      same(found, printed(["evaluate", input, ...flags(options)]), `${name} ${JSON.stringify(options)}`, ONE);
    }
    const understood = call("understand", { name }, payload);
    assert.deepEqual([understood.rows, understood.first.length], [12 * 16, 5]);
    const { context } = call("log_context", { name, from: 10, transitions: 20 }, payload);
    assert.equal(call("forward", { context }).values[0].length, 22);
  }
});

test("training is that of the command line without fused multiplication", () => {
  for (const [seed, overrides] of [[0, { epochs: 40 }], [3, { epochs: 25, query: "skip", mask: "relaxed" }], [1, { epochs: 20, kernel: "elu1", "optimizer.lr": 1e-3 }]]) {
    const set = Object.entries(overrides).flatMap(([key, value]) => ["--set", `${key}=${value}`]);
    const args = ["pretrain", "--seeds", `${seed}..${seed + 1}`, "--out", join(folder, "runs"), ...set];
    // WebAssembly has no fused multiplication and addition.
    const expected = printed(args, { ICTD_SIMD: "scalar" });
    const found = call("train", { overrides, seed });
    assert.equal(found.train_seconds, 0);
    same(found, { ...expected, train_seconds: 0 }, `seed ${seed}`);
    const { id, epochs } = call("train_open", { overrides, seed });
    const standing = call("train_advance", { id, epochs });
    assert.deepEqual([standing.done, standing.history.length], [true, overrides.epochs]);
    assert.equal(standing.branch, found.seeds[0].branch);
    const model = call("train_params", { id });
    same(call("train_result", { id }), expected.seeds[0], `seed ${seed}, watched`);
    const d = model.params.V.length - 3;
    const context = { features: Array.from({ length: 5 }, (_, i) => Array.from({ length: d }, (_, a) => Math.sin(i + 2 * a))), rewards: [1, 0, 0.5, -1] };
    assert.equal(call("layers", { context, options: { ...model.options, params: model.params } }).tokens.length, model.options.layers + 1);
  }
});

test("the paper's experiment finds the branches that the command line finds", () => {
  const seeds = [0, 1, 2, 3, 4];
  const began = performance.now();
  const found = seeds.map((seed) => call("train", { seed }).seeds[0].branch);
  console.log(`# ${((performance.now() - began) / 5000).toFixed(2)} s per seed`);
  const expected = printed(["pretrain", "--seeds", "0..5", "--out", join(folder, "paper")]).seeds.map(({ branch }) => branch);
  assert.deepEqual(found, expected);
});

test("the page unpacks its modules and the engine", () => {
  const html = readFileSync(page, "utf8");
  const elements = {};
  for (const [, id, length, textContent] of html.matchAll(/id="(\w+)" data-length="(\d+)">([^<]*)</g)) elements[id] = { textContent, dataset: { length } };
  let map = null;
  const document = { getElementById: (id) => elements[id], createElement: () => ({}), head: { append: (script) => (map = script) } };
  const [, start] = html.match(/<script nonce="\w+">\n(.*?)<\/script>/s);
  new Function("document", start)(document);
  const folder = new URL("../page/", import.meta.url);
  const { imports } = JSON.parse(map.textContent);
  assert.ok("ictd/main" in imports);
  for (const [name, address] of Object.entries(imports)) {
    const text = decodeURIComponent(address.slice(address.indexOf(",") + 1));
    assert.equal(text, readFileSync(new URL(`${name.slice("ictd/".length)}.js`, folder), "utf8"));
  }
  // All but the names of its functions.
  const unpacked = new WebAssembly.Module(elements.engine.bytes());
  assert.deepEqual(WebAssembly.Module.exports(unpacked), WebAssembly.Module.exports(compiled));
  const engine = new WebAssembly.Instance(unpacked, {}).exports;
  assert.ok(engine.reserve(10) > 0);
  assert.ok(html.length <= 1e6 && !/https?:\/\//.test(html.replaceAll("http://www.w3.org/", "")));
});

test("whatever it is asked it answers in one line", () => {
  const [, context] = contexts().next().value;
  const requests = [
    "", "{", "[]", "null", "{}", '{"call": 3}', '{"call": "such"}', `${'{"call":'.repeat(500)}1${"}".repeat(500)}`,
    { call: "forward", context, options: { layers: 4e9 } }, { call: "forward", context, options: { layers: 1e7, tokens: true } },
    { call: "forward", context, options: { gamma: null, layers: -1 } }, { call: "layers", context, options: { layers: 1e8 } },
    { call: "certify", context, options: { step_size: -1 } }, { call: "spectrum", context, options: { layers: 1e9 } },
    { call: "process", kind: "ring", states: 1e9, gamma: 0.9 }, { call: "train", overrides: { n: 1e9, batch: 1e9 } },
    { call: "train", overrides: { states: 5000, features: 10000, batch: 1e6 } }, { call: "train", overrides: { task: "somewhere.json" } },
  ];
  const bytes = (text) => new TextEncoder().encode(text);
  for (const request of requests) {
    const { error } = engine(bytes(typeof request === "string" ? request : JSON.stringify(request)));
    assert.ok(typeof error === "string" && error.length > 0 && error.length < 2000 && !error.includes("\n"), JSON.stringify(request).slice(0, 100));
  }
  // Files with damage, under every name: an answer, whichever.
  const log = "episode,x,reward\n1,0.5,1\n1,0.25,\n";
  const start = [[0x89, 0x48, 0x44, 0x46, 13, 10, 26, 10], [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0], [0x50, 0x4b, 3, 4], [0x1f, 0x8b, 8], [255, 255, 255, 255], []];
  for (const first of start) {
    for (const rest of [[], [0, 0, 0, 0], Array.from({ length: 300 }, (_, k) => (k * 37) % 256), [...bytes(log)]]) {
      const payload = Uint8Array.from([...first, ...rest]);
      for (const name of ["log.csv", "a.npz", "a.jsonl", "a.safetensors", ""]) {
        for (const fields of [{ call: "evaluate", options: { gamma: 0.9 } }, { call: "understand" }, { call: "checkpoint" }, { call: "log_context", transitions: 2 }]) {
          const answer = engine(bytes(JSON.stringify({ ...fields, name })), payload);
          assert.ok("value" in answer || (typeof answer.error === "string" && !answer.error.includes("\n")));
        }
      }
    }
  }
});
