// The scripting door: what the command line prints with --json, as promises.

import { call, idlest, ready } from "ictd/engine";
import { model, optionsOf } from "ictd/model";
import { state } from "ictd/state";

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
    /** The context and the options of what scene 1 shows, for `forward`, or for a file that the command line reads. */
    shown: async () => {
      await ready;
      return { context: model(state).context, options: optionsOf(state) };
    },
    train: async (overrides = {}, seed = 0) => {
      const { value, seconds } = await idlest().timed("train", { overrides, seed });
      // The engine has no clock.
      return { ...value, train_seconds: seconds };
    },
  });
}
