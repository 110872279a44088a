// Every picture can be taken along: as an SVG that stands alone, and as the numbers behind it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { open, settled, start } from "./browser.mjs";

let browser;
before(async () => (browser = await start()));
after(() => browser.close());

test("pictures are saved and their numbers copied", async () => {
  const { page, check } = await open(browser);
  const menus = page.locator('summary[aria-label^="Save or copy"]');
  const many = await menus.count();
  assert.ok(many >= 8, `${many} menus`);
  for (let k = 0; k < many; k++) {
    if (!(await menus.nth(k).isVisible())) continue;
    await menus.nth(k).click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("Save SVG", { exact: false }).locator("visible=true").click()]);
    const svg = readFileSync(await download.path(), "utf8");
    assert.match(svg, /^<(\\?xml|svg)/);
    assert.ok(svg.includes("xmlns") && !/url\((?!#)|href="http|var\(--/.test(svg), `picture ${k} needs nothing from outside`);
    await menus.nth(k).click();
    await page.getByText("Copy numbers", { exact: false }).locator("visible=true").click();
    await settled(page);
    const table = (await page.evaluate(() => navigator.clipboard.readText())).trim().split("\n");
    assert.ok(table.length > 1 && table[0].includes("\t"), `picture ${k}: ${table[0]}`);
  }
  await check();
});
