// From a trained block to scene 1, and back.

import { call } from "ictd/engine";
import { html } from "ictd/draw";
import { initial, remember, state, subscribe, update } from "ictd/state";

/** States of the chain that a block is shown on where the present process has features of another dimension. */
const STATES = 6;

/** The number of features that parameters are made for: V has three rows more. */
const dimensionOf = (params) => (params.V ?? params.layers[0].V).length - 3;

/** A chain whose states have d features: the engine draws two at a time, so draws are put side by side. */
function chainOf(d, gamma) {
  const draws = Array.from({ length: Math.ceil(d / 2) }, (_, seed) => call("process", { kind: "boyan", states: STATES, seed, gamma }));
  const { P, rewards, initial: start } = draws[0];
  return { P, rewards, initial: start, features: P.map((_, s) => draws.flatMap(({ features }) => features[s]).slice(0, d)) };
}

function dimensionNow() {
  if (state.window) return (state.window.context.episodes ?? [state.window.context])[0].features[0].length;
  return state.own ? state.own.features[0].length : 2;
}

/**
 * Shows parameters at work in scene 1, on a process with as many features as they were trained for. `note` is how its tokens differ from
 * those of training.
 */
export function stepInto({ params, options = {}, note }, name) {
  const label = note ? `${name}; ${note}` : name;
  const d = dimensionOf(params);
  const gamma = options.gamma ?? state.gamma;
  remember("the parameters of scene 1");
  const patch = { block: { params, options, label }, layer: 1, token: null, chosen: null, hover: null, scene: "layer", gamma };
  if (d !== dimensionNow()) Object.assign(patch, { window: null, own: chainOf(d, gamma) });
  if (options.kernel) patch.kernel = options.kernel;
  if (options.temperature) patch.tau = options.temperature;
  if (options.layers) patch.layers = options.layers;
  if (options.step_size !== undefined) patch.alpha = options.step_size;
  update(patch, { step: true });
}

/** Back to θ_*, on a process that fits the page. */
function leaveBlock() {
  const names = ["block", "own", "kernel", "tau", "alpha", "layers", "gamma"];
  remember("the trained parameters");
  update(Object.fromEntries(names.map((name) => [name, initial(name)])));
}

/** One line above scene 1's pictures where parameters or tokens are not the page's own. */
export function origin() {
  const words = html("span");
  const block = html("button", { type: "button", class: "small", id: "leave-block", onclick: leaveBlock }, "Back to θ_*");
  const window = html(
    "button",
    { type: "button", class: "small", id: "leave-window", onclick: () => (remember("the window"), update({ window: null, token: null })) },
    "Back to the process",
  );
  const root = html("div", { class: "card origin", role: "status", hidden: true }, words, block, window);
  const sync = () => {
    root.hidden = !state.block && !state.window;
    block.hidden = !state.block;
    window.hidden = !state.window;
    const said = [state.block && `Parameters: ${state.block.label}.`, state.window && `Tokens: ${state.window.label}.`];
    words.textContent = said.filter(Boolean).join(" ");
  };
  subscribe((_, changed) => {
    if (changed.has("block") || changed.has("window")) sync();
  });
  sync();
  return root;
}
