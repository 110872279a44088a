// The layer that is shown: play, step, and how far apart both sides are.

import { html, most, num, write } from "ictd/draw";
import { state, update } from "ictd/state";

/** How long a layer stays while playing, milliseconds: long enough to look, short enough for fifteen. */
const PACE = 700;

/** The bar above the pictures. */
export class Stepper {
  constructor() {
    this.timer = 0;
    this.play = html("button", { type: "button", class: "main play", onclick: () => (this.timer ? this.stop() : this.start()) }, "Play");
    const back = html(
      "button",
      { type: "button", "aria-label": "One layer back", title: "One layer back", onclick: () => this.go(this.layer - 1) },
      "‹",
    );
    const on = html(
      "button",
      { type: "button", "aria-label": "One layer on", title: "One layer on", onclick: () => this.go(this.layer + 1) },
      "›",
    );
    this.range = html("input", {
      type: "range",
      min: 1,
      step: 1,
      "aria-label": "Layer",
      oninput: (event) => this.go(Number(event.target.value)),
    });
    this.words = html("span", { class: "words" });
    this.gap = html("output", { class: "gap", title: "The largest difference between both sides, over all layers and tokens" });
    this.root = html(
      "div",
      { class: "stepper card", role: "group", "aria-label": "Layers" },
      this.play,
      back,
      on,
      this.range,
      this.words,
      this.gap,
    );
  }

  go(layer) {
    this.stop();
    update({ layer: Math.max(1, Math.min(this.depth, layer)) });
  }

  start() {
    if (state.layer >= this.depth) update({ layer: 1 });
    this.timer = setInterval(() => {
      if (state.layer >= this.depth) this.stop();
      else update({ layer: state.layer + 1 });
    }, PACE);
    this.play.textContent = "Pause";
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.play.textContent = "Play";
  }

  /** Shows where it stands. */
  draw({ layer, depth, result, plain }) {
    this.layer = layer;
    this.depth = depth;
    this.range.max = depth;
    this.range.value = layer;
    this.range.style.setProperty("--share", depth > 1 ? `${(100 * (layer - 1)) / (depth - 1)}%` : "100%");
    write(this.words, `Layer <b>${layer}</b> of ${depth}`);
    // Rounding is a share of the numbers it happens to: where values are huge, so is a difference that means nothing.
    const largest = most(result.attention);
    const share = largest > 100 ? largest : 1;
    const other = plain ? "TD" : result.algorithm;
    const said =
      result.overflow !== undefined
        ? `values overflow in layer ${result.overflow}: the layers before it are shown`
        : result.td
          ? `<span class="attention-text">attention</span> = <span class="td-text">${other}</span> within <b>${num(result.difference / share)}</b>${share > 1 ? " of the largest value" : ""}`
          : "no TD algorithm corresponds to these parameters";
    write(this.gap, said);
    this.gap.dataset.difference = result.difference;
  }
}
