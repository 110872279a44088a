// Scene 1: every number that is shown is the command line's, whatever is changed.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { arithmetic, folder, formula, notice, open, settled, start } from "./browser.mjs";
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

test("the way to the picture moves the keyboard and nothing else", async () => {
  const { page, check } = await open(browser, { hash: "#n=9" });
  await page.locator(".skip").focus();
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(await page.evaluate(() => `${location.hash} ${document.activeElement.id}`), "#n=9 picture");
  await check();
});

const choose = async (page, s) => {
  await page.locator(`.state[data-state="${s}"]`).focus();
  await page.keyboard.press("Enter");
  await settled(page);
};
const count = (page) => page.locator(".state[data-state]").count();

test("states are added wherever one asks for it, and counted", async () => {
  for (const hash of ["#states=3&seed=0", "#process=ring&states=3", "#process=boyan&states=4&features=random"]) {
    const { page, check } = await open(browser, { hash });
    const was = await count(page);
    for (let k = 0; k < 3; k++) {
      await choose(page, k);
      await page.getByRole("button", { name: "Add one after it" }).click();
      await settled(page);
      assert.equal(await notice(page), "");
      assert.equal(await count(page), was + k + 1);
      assert.equal(await page.getByLabel("States", { exact: true }).inputValue(), String(was + k + 1));
      await agrees(page, folder());
    }
    await check();
  }
});

test("what the engine refuses is not done, and of a link not shown", async () => {
  // Without B it would go to and fro.
  const { page, check } = await open(browser, { hash: "#own=1,0,0~1:0.5,2:0.5;0,1,0~2:1;0,0,1~0:1" });
  await choose(page, 1);
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await settled(page);
  assert.match(await notice(page), /every 2 steps.*Nothing was changed/);
  assert.equal(await count(page), 3);
  assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
  await agrees(page, folder());
  // The page goes on: what is sound is done, and the notice goes.
  await page.getByRole("button", { name: "Add one after it" }).click();
  await settled(page);
  assert.equal(`${await count(page)} ${await notice(page)}`, "4 ");
  await check();
  const link = await open(browser, { hash: "#own=0,0,0~1:1;1,1,1~0:1&n=7" });
  assert.match(await notice(link.page), /every 2 steps.*drawn process/);
  assert.equal((await shown(link.page)).context.rewards.length, 7);
  await agrees(link.page, folder());
  await link.check();
});

for (const kernel of ["softmax", "relu", "elu1", "rbf", "linear", "tabular"]) {
  test(`${kernel}: formulas come to the numbers that they explain`, async () => {
    const { page, check } = await open(browser, { hash: `#kernel=${kernel}&tau=0.414&gamma=0.995&alpha=0.125&layer=3` });
    const weights = await page.locator(".weights").evaluate(({ picture }) => picture.numbers());
    await page.locator(".weights .frame").focus();
    // The first arrow begins in the corner.
    for (const [key, row, column] of [["ArrowDown", 1, 1], ["ArrowRight", 1, 2], ["ArrowDown", 2, 2], ["ArrowDown", 3, 2]]) {
      await page.keyboard.press(key);
      await settled(page);
      const lines = await formula(page);
      const at = lines.findIndex((line) => /^= .*÷/.test(line));
      const value = weights[row][column];
      for (const line of [lines[at], lines[at + 1]]) assert.ok(Math.abs(arithmetic(line) - value) < 1e-3 + 0.02 * Math.abs(value), `${line} is ${value}`);
    }
    await page.locator(".before .frame").focus();
    // The target memory, one row above the value: γ times the next value.
    for (let k = 0; k < 4; k++) await page.keyboard.press("ArrowDown");
    await settled(page);
    const [, target] = await formula(page);
    assert.match(target, /0\.995·/);
    const parts = target.split("=");
    assert.ok(Math.abs(arithmetic(parts[1]) - arithmetic(parts[2])) < 2e-3, target);
    await page.keyboard.press("ArrowDown");
    await settled(page);
    const value = (await formula(page)).slice(2, 4);
    assert.match(value[0], /0\.125·/);
    assert.ok(Math.abs(arithmetic(value[0]) - arithmetic(value[1])) < 3e-3, value.join(" "));
    await check();
  });
}

test("numbers that cannot be are refused in a line, and the one in use stands there", async () => {
  const { page, check } = await open(browser);
  for (const [label, text, range] of [
    ["Temperature τ", "0", /0\.0001 to 10000, found 0/],
    ["Layers L", "0", /whole number from 1 to 60/],
    ["Transitions n", "1000", /1 to 60/],
    ["Transitions n", "", /1 to 60\.$/],
    ["Discount γ", "1", /0 to 0\.999/],
    ["Step size α", "0", /0\.0001 to 100/],
  ]) {
    const field = page.getByLabel(label, { exact: true });
    const was = await field.inputValue();
    await field.fill(text);
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await notice(page), range);
    assert.equal(await field.inputValue(), was);
  }
  await page.getByLabel("Step size α", { exact: true }).fill("6");
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(`${(await shown(page)).options.step_size} ${await notice(page)}`, "6 ");
  await choose(page, 0);
  const reward = page.getByLabel("reward r", { exact: true });
  const was = await reward.inputValue();
  for (const text of ["1000", ""]) {
    await reward.fill(text);
    await page.keyboard.press("Enter");
    await settled(page);
    assert.match(await notice(page), /reward r: expected a number from −100 to 100/);
    assert.equal(await reward.inputValue(), was);
  }
  await check();
});

test("whatever replaces the process can be undone", async () => {
  const { page, check } = await open(browser);
  await choose(page, 0);
  await page.getByLabel("reward r", { exact: true }).fill("1.5");
  await page.keyboard.press("Enter");
  await settled(page);
  const edited = await shown(page);
  for (const change of [
    () => page.getByRole("button", { name: "Reset all" }).click(),
    () => page.getByLabel("Kind").selectOption("ring"),
    () => page.getByTitle("Seed: the next one").first().click(),
  ]) {
    await change();
    await settled(page);
    assert.notDeepEqual(await shown(page), edited);
    await page.getByRole("button", { name: "Undo" }).click();
    await settled(page);
    assert.deepEqual(await shown(page), edited);
  }
  await check();
});
