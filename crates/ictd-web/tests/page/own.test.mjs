// Scene 4: a log and a checkpoint of one's own, sound and damaged.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, formula, notice, open, settled, start } from "./browser.mjs";
import { ictd, near, onContext, same } from "./cli.mjs";

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
  // Nothing speaks of a process that is not there, or offers to change it.
  assert.ok(!(await page.locator("#picture").textContent()).includes("exact"));
  for (const label of ["Transitions n", "Kind", "States"]) assert.ok(!(await page.getByLabel(label, { exact: true }).isVisible()), label);
  assert.match(await page.locator("#text").textContent(), /your log/);
  // The way back and on keeps the window; a link, which cannot say it, leaves it.
  await page.goBack();
  await settled(page);
  await page.goForward();
  await settled(page);
  assert.ok(await page.locator("#leave-window").isVisible());
  await page.evaluate(() => (location.hash = "#n=8"));
  await settled(page);
  assert.ok(!(await page.locator("#leave-window").isVisible()));
  assert.equal((await page.evaluate(() => window.ictd.shown())).context.rewards.length, 8);
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

test("a checkpoint of other prompts is stepped into with a note, and its numbers are those of its matrices", async () => {
  const { page, check } = await open(browser, { hash: "#scene=own" });
  const place = folder();
  ictd("pretrain", "--set", "epochs=20", "--set", "query=source", "--seeds", "0..1", "--json", "--out", place);
  const file = readdirSync(place, { recursive: true }).map((name) => join(place, name)).find((name) => name.endsWith(".safetensors"));
  await choose(page, file);
  await page.locator("#step-into-file").waitFor();
  assert.match(await page.locator("#checkpoint-words").textContent(), /the query was the last source/);
  await page.locator("#step-into-file").click();
  await settled(page);
  const { context, options } = await page.evaluate(() => window.ictd.shown());
  const { values } = onContext(place, "forward", context, options);
  const cells = await page.locator('[data-side="attention"]').evaluateAll((all) => all.map(({ dataset }) => ({ ...dataset })));
  assert.equal(cells.length, values[0].length);
  for (const { column, layer, value } of cells) near(Number(value), values[layer][column], `layer ${layer}, column ${column}`, Math.max(Math.abs(value), 1e-3));
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

const HOSTILE = "<img src=x onerror=window.hacked=1><b>bold</b>&lt;";

test("text from files and addresses stays text", async () => {
  const place = folder();
  const { page, check } = await open(browser, { hash: `#scene=own&process=${HOSTILE}&tour=${HOSTILE}&block=${HOSTILE}~${HOSTILE}~1~7~AAAA` });
  const harmless = async (what) => {
    await settled(page);
    const found = await page.evaluate(() => [window.hacked, document.querySelectorAll("img, #picture b b, #formula b, [onerror]").length]);
    assert.deepEqual(found, [undefined, 0], what);
  };
  const file = join(place, `${HOSTILE.replaceAll("/", "")}.csv`);
  writeFileSync(file, log().replace(",x,", `,${HOSTILE},`).replace(/^(\d+,\d+,)(\d)/gm, `$1$2${HOSTILE}`));
  await choose(page, file);
  await page.locator("#evaluate").waitFor();
  await harmless("understood");
  await page.locator("#evaluate").click();
  await page.waitForFunction(() => document.getElementById("judgement").textContent !== "", null, { timeout: 120_000 });
  await page.locator(".estimates .frame").focus();
  const said = new Set();
  for (let k = 0; k < 3; k++) {
    await page.keyboard.press("ArrowDown");
    await harmless("estimates");
    said.add((await formula(page))[0]);
  }
  assert.ok([...said].some((title) => title.includes(HOSTILE)), `${[...said]}`);
  await page.locator("#look").click();
  await harmless("window");
  assert.ok((await page.locator(".origin").textContent()).includes("<img"));
  // A checkpoint whose header says such things, and parameters under such a name.
  await page.locator('[data-scene="own"]').click();
  const header = JSON.stringify({ __metadata__: { format: HOSTILE, kernel: HOSTILE }, [HOSTILE]: { dtype: HOSTILE, shape: [1], data_offsets: [0, 4] } });
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(header)));
  const bad = join(place, "bad.safetensors");
  writeFileSync(bad, Buffer.concat([length, Buffer.from(header), Buffer.alloc(4)]));
  await choose(page, bad);
  await page.waitForFunction(() => !document.getElementById("failure").hidden);
  await harmless("checkpoint");
  const matrix = (entry) => Array.from({ length: 5 }, (_, i) => Array.from({ length: 5 }, (_, j) => entry(i, j)));
  const params = join(place, `${HOSTILE.replaceAll("/", "")}.json`);
  writeFileSync(params, JSON.stringify({ V: matrix((i, j) => (i === 4 && j > 1 ? 1 : 0)), A: matrix((i, j) => Number(i === j)) }));
  await choose(page, params);
  await page.locator("#step-into-file").click();
  await harmless("parameters");
  const hash = await page.evaluate(() => location.hash);
  await check();
  const again = await open(browser, { hash });
  assert.ok((await again.page.locator(".origin").textContent()).includes("<img"));
  assert.equal(await again.page.evaluate(() => window.hacked), undefined);
  // Were text to become an element after all, the browser would not run it.
  await again.page.evaluate(() => document.body.insertAdjacentHTML("beforeend", "<img src=x onerror=window.hacked=1>"));
  await again.page.waitForTimeout(200);
  assert.equal(await again.page.evaluate(() => window.hacked), undefined);
  await again.page.context().close();
});

test("the page makes no elements of text", () => {
  const source = new URL("../../page/", import.meta.url);
  for (const name of readdirSync(source)) assert.ok(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write\(/.test(readFileSync(new URL(name, source), "utf8")), name);
});

test("a file that is dropped on another scene is shown in this one", async () => {
  for (const scene of ["layer", "depth", "train"]) {
    const { page, check } = await open(browser, { hash: `#scene=${scene}` });
    await page.evaluate((text) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([text], "walk.csv"));
      for (const type of ["dragover", "drop"]) {
        const event = new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true });
        document.querySelector("h1").dispatchEvent(event);
        if (!event.defaultPrevented) throw new Error(`${type} would leave the page`);
      }
    }, log());
    await page.locator("#evaluate").waitFor();
    await check();
  }
});

test("a window that cannot be is refused in the page's own words", async () => {
  const { page, check } = await open(browser, { hash: "#scene=own" });
  const file = join(folder(), "walk.csv");
  writeFileSync(file, log());
  await choose(page, file);
  await page.locator("#evaluate").waitFor();
  for (const [id, text, words] of [["from", "-5", /whole number from 0 to \d+, found -5/], ["count", "41", /from 1 to 40, found 41/]]) {
    const was = await page.locator(`#${id}`).inputValue();
    await page.locator(`#${id}`).fill(text);
    await page.locator("#look").click();
    await settled(page);
    assert.match(await failure(page), words);
    await page.locator(`#${id}`).fill(was);
  }
  assert.equal(await notice(page), "");
  await check();
});
