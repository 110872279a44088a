// The scripting door: what the command line prints with --json, as promises.

import { call, inWorker, ready } from "ictd/engine";

const ask = async (name, fields) => {
  await ready;
  return call(name, fields);
};

/** Puts `window.ictd` there. */
export function openDoor() {
  window.ictd = Object.freeze({
    ready,
    forward: (context, options = {}) => ask("forward", { context, options }),
    certify: (context, options = {}) => ask("certify", { context, options }),
    train: (overrides = {}, seed = 0) => inWorker("train", { overrides, seed }),
  });
}
