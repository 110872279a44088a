// The tour: eight steps with the text of the documentation, by mouse and by keyboard, and it leaves everything alive.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { open, settled, start } from "./browser.mjs";

let browser;
before(async () => (browser = await start()));
after(() => browser.close());

const guide = readFileSync(new URL("../../../../docs/how-it-works.md", import.meta.url), "utf8");
const step = (page) => page.locator(".tour").getAttribute("data-step");

test("eight steps, each with something to look at", async () => {
  const { page, check } = await open(browser);
  await page.locator("#tour").click();
  const seen = [];
  for (let k = 1; k <= 8; k++) {
    await settled(page);
    assert.equal(await step(page), String(k));
    const words = await page.locator(".tour").textContent();
    const title = await page.locator(".tour h2, .tour h3").first().textContent();
    assert.ok(guide.includes(title.replace(/^\d+\.?\s*/, "").trim()), `“${title}” stands in the documentation`);
    assert.ok(words.length > 80);
    // It points at something, once that is drawn.
    await page.locator(".lit").first().waitFor({ timeout: 5000 });
    seen.push(title);
    if (k < 8) await page.locator("#tour-next").click();
  }
  assert.equal(new Set(seen).size, 8);
  await page.locator("#tour-end").click();
  await settled(page);
  assert.equal(await page.locator(".tour:visible").count(), 0);
  await check();
});

test("the keyboard leads through it and out of it", async () => {
  const { page, check } = await open(browser);
  await page.locator("#tour").focus();
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(await step(page), "1");
  await page.keyboard.press("ArrowRight");
  await settled(page);
  assert.equal(await step(page), "2");
  await page.keyboard.press("ArrowLeft");
  await settled(page);
  assert.equal(await step(page), "1");
  await page.keyboard.press("Escape");
  await settled(page);
  assert.equal(await page.locator(".tour:visible").count(), 0);
  await check();
});

test("on a phone the way on is always in view", async () => {
  for (let k = 1; k <= 8; k++) {
    const { page, check } = await open(browser, { hash: `#tour=${k}`, width: 390, height: 844 });
    const seen = await page.locator(k < 8 ? "#tour-next" : "#tour-end").evaluate((button) => {
      const { left, top, width, height } = button.getBoundingClientRect();
      return document.elementFromPoint(left + width / 2, top + height / 2) === button;
    });
    assert.ok(seen, `step ${k}`);
    await check();
  }
});
