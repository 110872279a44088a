// Controls of the process, the trajectory and the layers, for every scene that shows them.

import { button, check, choice, section, seed, slider } from "ictd/controls";
import { FEATURES, KERNELS, KINDS, MOST_STATES } from "ictd/model";
import { initial, remember, state, subscribe, update } from "ictd/state";

const FIELDS = [
  "process",
  "states",
  "seed",
  "features",
  "own",
  "gamma",
  "n",
  "walk",
  "kernel",
  "tau",
  "alpha",
  "layers",
  "unit",
  "layer",
  "window",
  "block",
  "token",
  "chosen",
];

/** A process that is made by kind and seed, in place of one that was edited or came from elsewhere. */
const NONE = { own: null, window: null, chosen: null };
const fresh = (patch) => {
  remember("the process");
  update({ ...patch, ...NONE });
};

/** All controls of what a layer is made of. */
export function layerControls() {
  const restore = button("Back to the drawn process", () => fresh({}), { className: "small" });
  const made = [
    choice({ field: "process", label: "Kind", options: KINDS, onchange: (process) => fresh({ process }) }),
    slider({
      field: "states",
      label: "States",
      least: 3,
      most: MOST_STATES,
      step: 1,
      onset: fresh,
      shown: () => state.own?.P.length ?? state.states,
    }),
    choice({ field: "features", label: "Features", options: FEATURES, onchange: (features) => fresh({ features }) }),
    seed({ field: "seed", label: "Seed", onset: fresh }),
  ];
  const walk = section(
    "Trajectory",
    slider({ field: "n", label: "Transitions n", least: 1, most: 60, step: 1 }),
    seed({ field: "walk", label: "Seed" }),
  );
  const sync = () => {
    restore.hidden = !state.own || state.window !== null;
    // Tokens of a log come from no process that could be changed.
    for (const control of [...made, walk]) control.hidden = state.window !== null;
  };
  subscribe((_, changed) => (changed.has("own") || changed.has("window")) && sync());
  sync();
  return [
    section("Process", ...made, slider({ field: "gamma", label: "Discount γ", least: 0, most: 0.99, step: 0.01 }), restore),
    walk,
    section(
      "Transformer",
      choice({ field: "kernel", label: "Kernel", options: KERNELS }),
      slider({
        field: "tau",
        label: "Temperature τ",
        least: 0.01,
        most: 10,
        log: true,
        decimals: 2,
        hint: "Small: sharp attention, on few sources",
      }),
      slider({ field: "alpha", label: "Step size α", least: 0.05, most: 8, step: 0.05 }),
      slider({ field: "layers", label: "Layers L", least: 1, most: 60, step: 1 }),
      check({ field: "unit", label: "Features of length 1", hint: "Divide feature vectors by their length" }),
    ),
    button("Reset all", () => {
      remember("the reset");
      update(Object.fromEntries(FIELDS.map((name) => [name, initial(name)])));
    }),
  ];
}
