// How fast the page is, beside the native program where there is one: `cargo xtask bench explorer`.

import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { address, folder, open, start } from "./browser.mjs";
import { ictd } from "./cli.mjs";

const SEEDS = 5;
const middle = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const most = (list) => Math.max(...list);
const row = (name, ...cells) => console.log(`${name.padEnd(44)}${cells.map((cell) => cell.padStart(14)).join("")}`);
const ms = (x) => `${x.toFixed(1)} ms`;

/** Runs in the page: milliseconds that a change of a slider takes until everything is drawn and laid out, for many values. */
async function redraws(label) {
  const slider = document.querySelector(`input[type="range"][aria-label="${label}"]`);
  const [least, highest] = [Number(slider.min), Number(slider.max)];
  const times = [];
  for (let k = 1; k <= 40; k++) {
    const before = slider.value;
    slider.value = least + ((highest - least) * k) / 41;
    if (slider.value === before) continue;
    times.push(
      await new Promise((done) => {
        let began = 0;
        requestAnimationFrame(() => (began = performance.now()));
        const asked = performance.now();
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        const handled = performance.now() - asked;
        requestAnimationFrame(() => {
          document.body.getBoundingClientRect();
          done(handled + performance.now() - began);
        });
      }),
    );
  }
  // The first frames are those of a program that is being compiled.
  return times.slice(5);
}

/** Runs in the page: trains and counts frames until all seeds are done. */
async function trained(seeds) {
  document.getElementById("train").click();
  const began = performance.now();
  const gaps = [];
  let last = began;
  while (document.querySelectorAll("[data-seed][data-done]").length < seeds) {
    const now = await new Promise((done) => requestAnimationFrame(() => done(performance.now())));
    gaps.push(now - last);
    last = now;
  }
  return { seconds: (last - began) / 1000, frames: gaps.length, slowest: Math.max(...gaps) };
}

const browser = await start();
row("", "median", "largest");
row("size of the file", `${statSync(fileURLToPath(address)).size} B`);
const opened = [];
for (let k = 0; k < 7; k++) {
  const { page, check } = await open(browser);
  opened.push(await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done(performance.now())))));
  await check();
}
row("usable after", ms(middle(opened)), ms(most(opened)));

const { page, check } = await open(browser, { hash: "#process=boyan&states=10&n=40&layers=15" });
for (const label of ["Temperature τ, slider", "Discount γ, slider", "Step size α, slider", "Layer"]) {
  const times = await page.evaluate(redraws, label);
  row(`redraw of scene 1, n = 40, L = 15, ${label.split(",")[0]}`, ms(middle(times)), ms(most(times)));
}
await check();

const training = await open(browser, { hash: `#scene=train&train.seeds=${SEEDS}` });
const { seconds, frames, slowest } = await training.page.evaluate(trained, SEEDS);
row(`frames per second, ${SEEDS} seeds in training`, (frames / seconds).toFixed(0), `${ms(slowest)} gap`);
await training.check();

// One seed after the other, as the native program with one thread.
const alone = await open(browser);
const inPage = [];
for (let seed = 0; seed < SEEDS; seed++) inPage.push((await alone.page.evaluate((s) => window.ictd.train({}, s), seed)).train_seconds);
const native = ictd("pretrain", "--seeds", `0..${SEEDS}`, "--threads", "1", "--json", "--out", join(folder(), "runs")).train_seconds;
const total = inPage.reduce((a, b) => a + b);
row(`training ${SEEDS} seeds, one thread: page`, `${total.toFixed(2)} s`);
row("                                native", `${native.toFixed(2)} s`);
row("                                ratio", (total / native).toFixed(1));
await alone.check();
await browser.close();
