// Scene 1: every number that is shown is the command line's, whatever is changed.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { folder, notice, open, settled, start } from "./browser.mjs";
import { near, onContext, same } from "./cli.mjs";

let browser;
before(async () => (browser = await start()));
after(() => browser.close());

const shown = (page) => page.evaluate(() => window.ictd.shown());
const side = (page, name) =>
  page.locator(`[data-side="${name}"]`).evaluateAll((cells) => cells.map(({ dataset }) => ({ column: Number(dataset.column), layer: Number(dataset.layer), value: Number(dataset.value) })));

/** Compares what the page shows of its layer, on both sides, with the command line. */
async function agrees(page, place) {
  const { context, options } = await shown(page);
  const { values } = onContext(place, "forward", context, options);
  for (const name of ["attention", "td"]) {
    const cells = await side(page, name);
    assert.equal(cells.length, values[0].length);
    for (const { column, layer, value } of cells) near(value, values[layer][column], `${name}, layer ${layer}, column ${column}`, Math.max(Math.abs(value), 1e-3));
  }
  return values;
}

test("every layer shows the values of the command line", async () => {
  const { page, check } = await open(browser);
  const place = folder();
  const values = await agrees(page, place);
  const depth = values.length - 1;
  for (let layer = 1; layer <= depth; layer++) {
    const cells = await side(page, "attention");
    assert.ok(cells.every((cell) => cell.layer === layer));
    for (const { column, value } of cells) near(value, values[layer][column], `layer ${layer}, column ${column}`, Math.max(Math.abs(value), 1e-3));
    await page.getByRole("button", { name: "One layer on" }).click();
    await settled(page);
  }
  assert.ok(Math.abs(values[depth][0] - values[1][0]) > 1e-3, "layers change values");
  const difference = await page.locator("[data-difference]").getAttribute("data-difference");
  assert.ok(Number(difference) < 1e-12, difference);
  await check();
});

for (const kernel of ["softmax", "relu", "elu1", "rbf", "linear", "tabular"]) {
  test(`${kernel}: numbers of the command line`, async () => {
    const { page, check } = await open(browser, { hash: `#kernel=${kernel}&process=grid&states=6&n=25&layers=7&layer=7&tau=0.5&alpha=0.3` });
    await agrees(page, folder());
    await check();
  });
}

test("the scripting door answers as the command line does", async () => {
  const { page, check } = await open(browser);
  const place = folder();
  const { context, options } = await shown(page);
  const { step_size: _, ...certified } = options;
  const door = await page.evaluate(([x, o]) => window.ictd.forward(x, { ...o, tokens: true, fixed_point: true }), [context, options]);
  same(door, onContext(place, "forward", context, { ...options, tokens: true, fixed_point: true }), "forward", ["reasons"]);
  const certificate = await page.evaluate(([x, o]) => window.ictd.certify(x, o), [context, { ...certified, step_size: 0.7 }]);
  same(certificate, onContext(place, "certify", context, { ...certified, step_size: 0.7 }), "certify", ["reasons"]);
  const refused = await page.evaluate((x) => window.ictd.forward(x, { gamma: 2 }).catch((error) => error.message), context);
  assert.match(refused, /gamma/);
  assert.ok(!refused.includes("\n"));
  await check();
});

test("a reward that is edited moves values as it should", async () => {
  const { page, check } = await open(browser);
  const place = folder();
  const first = await agrees(page, place);
  const { context: was } = await shown(page);
  await page.locator('.hit.grab[data-state="1"]').click();
  await settled(page);
  await page.getByLabel("reward r", { exact: true }).fill("1.75");
  await page.keyboard.press("Enter");
  await settled(page);
  const { context: is } = await shown(page);
  assert.notDeepEqual(is.rewards ?? is.episodes, was.rewards ?? was.episodes);
  assert.ok(JSON.stringify(is).includes("1.75"));
  const second = await agrees(page, place);
  assert.notDeepEqual(first[1], second[1]);
  await check();
});

test("states are dragged, and moved with the keyboard", async () => {
  const { page, check } = await open(browser);
  const place = folder();
  const features = async () => (await shown(page)).context;
  const before = await features();
  const box = await page.locator('.hit.grab[data-state="2"]').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 + 25, box.y + box.height / 2 + 15, { steps: 5 });
  await page.mouse.up();
  await settled(page);
  const dragged = await features();
  assert.notDeepEqual(dragged, before);
  await agrees(page, place);
  await page.keyboard.press("Escape");
  await page.locator('.state[data-state="0"]').focus();
  await page.keyboard.press("ArrowRight");
  await settled(page);
  assert.notDeepEqual(await features(), dragged);
  await agrees(page, place);
  await check();
});

test("the address keeps what is shown", async () => {
  const { page, check } = await open(browser, { hash: "#process=ring&states=4&n=9" });
  await page.locator('.hit.grab[data-state="1"]').click();
  await settled(page);
  await page.getByLabel("reward r", { exact: true }).fill("-0.5");
  await page.keyboard.press("Enter");
  await page.getByLabel("Temperature τ", { exact: true }).fill("0.35");
  await page.keyboard.press("Enter");
  await settled(page);
  await page.waitForTimeout(300);
  const was = await shown(page);
  assert.equal(was.options.temperature, 0.35);
  const hash = await page.evaluate(() => location.hash);
  await check();
  const again = await open(browser, { hash });
  same(await shown(again.page), was, "shown");
  await again.check();
});

test("an address that makes no sense is no obstacle", async () => {
  for (const hash of ["#n=-1&layers=x&own=%zz", "#tau=1e999&kernel=none", `#own=${"9".repeat(5000)}`, "#scene=nowhere"]) {
    const { page, check } = await open(browser, { hash });
    assert.equal(await notice(page), "");
    await agrees(page, folder());
    await check();
  }
});
