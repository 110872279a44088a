// Scene 4: a log and a checkpoint of one's own, sound and damaged.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, open, settled, start } from "./browser.mjs";
import { ictd, same } from "./cli.mjs";

let browser;
before(async () => (browser = await start()));
after(() => browser.close());

/** A walk among five states, rewarded at one end; `extra` is appended to every row. */
function log() {
  const rows = ["episode,t,x,reward,terminated"];
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let episode = 0; episode < 60; episode++) {
    let state = 2;
    for (let t = 0; state >= 0 && state < 5; t++) {
      const next = state + (random() < 0.5 ? -1 : 1);
      rows.push(`${episode},${t},${state},${next === 5 ? 1 : 0},${next < 0 || next === 5 ? "true" : "false"}`);
      state = next;
    }
  }
  return `${rows.join("\n")}\n`;
}

const failure = (page) => page.locator("#failure").evaluate((element) => (element.hidden ? "" : element.textContent));

/** Chooses a file, as a person would in the dialogue. */
async function choose(page, path) {
  await page.locator("#file").setInputFiles(path);
  await settled(page);
}

test("a log is evaluated as the command line does it", async () => {
  const { page, check } = await open(browser, { hash: "#scene=own" });
  const file = join(folder(), "walk.csv");
  writeFileSync(file, log());
  await choose(page, file);
  await page.locator("#evaluate").waitFor();
  await page.locator("#evaluate").click();
  await page.locator("#evaluation #judgement").waitFor({ timeout: 120_000 });
  await page.waitForFunction(() => document.getElementById("judgement").textContent !== "");
  const gamma = await page.getByLabel("Discount γ", { exact: true }).inputValue();
  const native = ictd("evaluate", file, "--gamma", gamma, "--json");
  const shown = await page.locator("#evaluation [data-value]").evaluateAll((all) => all.map(({ dataset }) => Number(dataset.value)));
  const values = native.rows.map(({ value }) => value);
  for (const value of values) assert.ok(shown.some((x) => Math.abs(x - value) <= 1e-12 * Math.max(1, Math.abs(value))), `${value} is shown`);
  assert.equal((await page.locator("#judgement").textContent()).toLowerCase().includes(native.judgement), true);
  await page.locator("#look").click();
  await settled(page);
  assert.equal(await page.evaluate(() => document.querySelector('[aria-current="page"]').dataset.scene), "layer");
  assert.ok((await page.locator('[data-side="attention"]').count()) > 10);
  await check();
});

test("what cannot be read is refused in a line, and nothing is lost", async () => {
  const { page, check } = await open(browser, { hash: "#scene=own" });
  const place = folder();
  const good = join(place, "walk.csv");
  writeFileSync(good, log());
  await choose(page, good);
  await page.locator("#evaluate").waitFor();
  const understood = await page.locator("#picture").textContent();
  for (const [name, content] of [
    ["empty.csv", ""],
    ["header.csv", "episode,t,x,reward\n"],
    ["text.csv", "episode,t,x,reward\n1,0,abc,1\n1,1,2,0\n"],
    ["short.csv", "episode,t,x,reward\n1,0,1\n"],
    ["nan.csv", "episode,t,x,reward\n1,0,nan,1\n1,1,2,1\n"],
    ["noise.csv", "\u0000\u0001\u0002"],
    ["cut.safetensors", "abc"],
    ["broken.json", "{"],
    ["other.json", "{\"a\": 1}"],
  ]) {
    writeFileSync(join(place, name), content);
    await choose(page, join(place, name));
    await page.waitForFunction(() => !document.getElementById("failure").hidden);
    const said = await failure(page);
    assert.ok(said.length > 10 && !said.includes("\n"), `${name}: ${said}`);
    assert.ok((await page.locator("#evaluate").isVisible()), `${name}: the log before is still there`);
    await choose(page, good);
    await page.waitForFunction(() => document.getElementById("failure").hidden);
  }
  assert.equal(await page.locator("#picture").textContent(), understood);
  await check();
});

test("text is pasted", async () => {
  const { page, check } = await open(browser, { hash: "#scene=own" });
  await page.locator("#paste").click();
  await page.locator("#pasted").fill(log());
  await page.locator("#use-pasted").click();
  await page.locator("#evaluate").waitFor();
  assert.equal(await failure(page), "");
  await check();
});

test("a checkpoint is shown and stepped into", async () => {
  const { page, check } = await open(browser, { hash: "#scene=own" });
  const place = folder();
  ictd("pretrain", "--set", "epochs=20", "--seeds", "0..1", "--json", "--out", place);
  const file = readdirSync(place, { recursive: true }).map((name) => join(place, name)).find((name) => name.endsWith(".safetensors"));
  await choose(page, file);
  await page.locator("#step-into-file").waitFor();
  await page.locator("#step-into-file").click();
  await settled(page);
  const { context, options } = await page.evaluate(() => window.ictd.shown());
  writeFileSync(join(place, "context.json"), JSON.stringify(context));
  const native = ictd("forward", "--input", join(place, "context.json"), "--params", file, "--layers", String(options.layers), "--json");
  const door = await page.evaluate(([x, o]) => window.ictd.forward(x, o), [context, options]);
  same(door.values, native.values, "values");
  // Damaged in the middle: a line, and what was shown stays.
  const bytes = readFileSync(file);
  writeFileSync(join(place, "cut.safetensors"), bytes.subarray(0, bytes.length - 9));
  await page.locator('[data-scene="own"]').click();
  await choose(page, join(place, "cut.safetensors"));
  await page.waitForFunction(() => !document.getElementById("failure").hidden);
  assert.ok(await page.locator("#step-into-file").isVisible());
  await check();
});
