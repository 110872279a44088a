// Scene 4's file: the log or checkpoint that was given, and what the engine says of it.

import { Lane, call } from "ictd/engine";
import { processOf } from "ictd/model";
import { field, number, state } from "ictd/state";

field("log.gamma", 0.9, number(0, 1));

/** Roles of columns that may be told. */
export const ROLES = ["episode", "time", "state", "reward", "terminated", "truncated"];

/** Walks of the example, and how long each is: enough for intervals, and quickly evaluated. */
const WALKS = 60;
const STEPS = 20;

// A worker of its own: an evaluation may be stopped, training goes on.
const lane = new Lane();

/** What was said about columns: `{role: name}`, and `missing`. */
export const said = {};

const options = () => Object.fromEntries(Object.entries(said).filter(([, value]) => value));

/** A log that was read: `{name, bytes, understood, exact, evaluation}`. */
export async function readLog(name, bytes, exact = null) {
  return { name, bytes, exact, understood: await lane.call("understand", { name, options: options() }, bytes), evaluation: null };
}

/** A checkpoint that was read: `{name, model}`. */
export async function readCheckpoint(name, bytes) {
  return { name, model: await lane.call("checkpoint", { name }, bytes) };
}

/** The values of a log. */
export const evaluate = (log) => lane.call("evaluate", { name: log.name, options: { ...options(), gamma: state["log.gamma"] } }, log.bytes);

/** A window of a log as a context. */
export const windowOf = (log, from, transitions) =>
  lane.call("log_context", { name: log.name, options: { ...options(), gamma: state["log.gamma"] }, from, transitions }, log.bytes);

/** Ends what the worker does. */
export const stop = () => lane.stop();

/** Walks through the process of scene 1 as a log, with the exact values that an evaluation should find. */
export function exampleLog() {
  const process = processOf({ ...state, window: null });
  const { values, ...asked } = process;
  const names = process.features[0].map((_, k) => `x${k + 1}`);
  const lines = [["episode", "t", ...names, "reward", "terminated"].join(",")];
  for (let walk = 0; walk < WALKS; walk++) {
    const { context } = call("sample", { process: asked, n: STEPS, seed: walk });
    context.features.forEach((x, t) => lines.push([walk, t, ...x, context.rewards[t] ?? "", 0].join(",")));
  }
  const exact = new Map(process.features.map((x, s) => [JSON.stringify(x), values[s]]));
  return {
    name: "walks.csv",
    bytes: new TextEncoder().encode(`${lines.join("\n")}\n`),
    exact: { gamma: process.gamma, of: (row) => exact.get(JSON.stringify(Object.values(row.state))) },
  };
}
