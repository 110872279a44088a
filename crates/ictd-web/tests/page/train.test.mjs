// Scene 3: seeds end where the command line says, and can be stepped into.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { arithmetic, folder, formula, open, settled, start } from "./browser.mjs";
import { ictd, onContext, near } from "./cli.mjs";

let browser;
before(async () => (browser = await start()));
after(() => browser.close());

const SEEDS = 5;
/** Training takes its time where there is one slow core. */
const PATIENCE = 120_000;

const ended = (page) => page.waitForFunction((seeds) => document.querySelectorAll("[data-seed][data-done]").length === seeds, SEEDS, { timeout: PATIENCE });
const branches = (page) => page.locator("[data-seed]").evaluateAll((cards) => cards.map(({ dataset }) => dataset.branch));

for (const query of ["next", "source"]) {
  test(`query ${query}: five seeds take the branches of the command line`, async () => {
    const { page, check } = await open(browser, { hash: `#scene=train&train.query=${query}` });
    await page.locator("#train").click();
    await ended(page);
    await settled(page);
    const line = (await page.locator("#train-command").textContent()).split(" ").slice(1);
    const { seeds } = ictd(...line, "--json", "--out", join(folder(), "runs"));
    assert.deepEqual(await branches(page), seeds.map(({ branch }) => branch));
    for (const branch of ["td", "mirror", "none"]) {
      const count = await page.locator(`[data-count="${branch}"]`).getAttribute("data-value");
      assert.equal(Number(count), seeds.filter((seed) => seed.branch === branch).length, branch);
    }
    assert.match(await page.locator("#train-time").textContent(), /\d s/);
    await check();
  });
}

for (const [what, hash] of Object.entries({ "": "", ", its query a source": "&train.query=source", ", with diagonal mixing": "&train.rho=0.3" })) test(`a trained block is stepped into${what}`, async () => {
  const { page, check } = await open(browser, { hash: `#scene=train&train.tasks=200${hash}` });
  await page.locator("#train").click();
  await ended(page);
  await page.locator('[data-step-into="2"]').click();
  await settled(page);
  const { context, options } = await page.evaluate(() => window.ictd.shown());
  assert.ok(options.params);
  const { values } = onContext(folder(), "forward", context, options);
  const cells = await page.locator('[data-side="attention"]').evaluateAll((all) => all.map(({ dataset }) => ({ column: dataset.column, layer: dataset.layer, value: Number(dataset.value) })));
  for (const { column, layer, value } of cells) near(value, values[layer][column], `layer ${layer}, column ${column}`, Math.max(Math.abs(value), 1e-3));
  assert.equal((await page.locator(".origin").textContent()).includes("the query was the last source"), hash.includes("source"));
  assert.equal(await page.getByLabel("States", { exact: true }).inputValue(), String(await page.locator(".state[data-state]").count()));
  // The weight of the first source for itself, where mixing adds to it, and for the next column, where it does not.
  await page.locator(".weights .frame").focus();
  for (let k = 0; k < 2; k++) {
    await page.keyboard.press("ArrowRight");
    await settled(page);
    const lines = await formula(page);
    const at = lines.findIndex((line) => /^= .*÷/.test(line));
    assert.equal(lines[at].includes("0.3)"), hash.includes("rho"));
    assert.ok(Math.abs(arithmetic(lines[at]) - arithmetic(lines[at + 1])) < 2e-3, lines.join(" "));
  }
  await check();
});

test("training can be stopped, and the door trains as the command line does", async () => {
  const { page, check } = await open(browser, { hash: "#scene=train&train.tasks=6000&train.seeds=5" });
  await page.locator("#train").click();
  await page.waitForFunction(() => [...document.querySelectorAll("[data-seed]")].some(({ dataset }) => Number(dataset.epoch) > 0));
  await page.locator("#train").click();
  await page.waitForFunction(() => document.getElementById("train").textContent === "Train");
  const door = await page.evaluate(() => window.ictd.train({ epochs: 150 }, 7));
  const native = ictd("pretrain", "--set", "epochs=150", "--seeds", "7..8", "--json", "--out", join(folder(), "runs"));
  assert.equal(door.seeds.length, 1);
  assert.equal(door.seeds[0].branch, native.seeds[0].branch);
  // Single precision without fused multiply-add, 150 tasks: rounding has grown, and no more than that.
  for (const key of ["v_em", "a_em", "td_loss", "msve"]) assert.ok(Math.abs(door.seeds[0][key] - native.seeds[0][key]) < 1e-3, `${key}: ${door.seeds[0][key]} ${native.seeds[0][key]}`);
  assert.ok(door.train_seconds > 0);
  const refused = await page.evaluate(() => window.ictd.train({ epochz: 1 }, 0).catch((error) => error.message));
  assert.match(refused, /epochz/);
  await check();
});
