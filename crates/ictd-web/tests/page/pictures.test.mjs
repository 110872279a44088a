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
    const [title, ramp] = await menus.nth(k).evaluate((menu) => {
      const { heading, legend } = menu.closest("figure").picture;
      return [heading.textContent, legend.textContent];
    });
    const said = svg.replace(/<[^>]+>/g, "");
    assert.ok(said.startsWith(title.trim().slice(0, 3)) && said.includes(title.split(" ").at(-1)), `picture ${k} has its title: ${title}`);
    assert.equal(svg.includes("linearGradient"), ramp !== "", `picture ${k} has its scale`);
    await menus.nth(k).click();
    await page.getByText("Copy numbers", { exact: false }).locator("visible=true").click();
    await settled(page);
    const table = (await page.evaluate(() => navigator.clipboard.readText())).trim().split("\n");
    assert.ok(table.length > 1 && table[0].includes("\t"), `picture ${k}: ${table[0]}`);
  }
  await check();
});

test("copied numbers are all that is drawn, with every digit", async () => {
  const { page, check } = await open(browser);
  const table = (selector) => page.locator(selector).evaluate(({ picture }) => picture.numbers());
  const values = await table(".chart");
  const moves = await table(".bars.moves");
  const exact = await table(".graph");
  const column = exact[0].indexOf("exact");
  for (const [state, ...row] of exact.slice(1)) {
    const at = values[0].indexOf(`${state} exact`);
    assert.ok(at > 0 && values.slice(1).every((line) => line[at] === row[column - 1]), `exact value of ${state}`);
    for (const line of moves.slice(1).filter((line) => line[1] === state)) assert.equal(line.at(-1), row[column - 1]);
  }
  await check();
  const training = await open(browser, { hash: "#scene=train&train.tasks=100&train.seeds=3" });
  await training.page.locator("#train").click();
  await training.page.waitForFunction(() => document.querySelectorAll("[data-seed][data-done]").length === 3, null, { timeout: 120_000 });
  await settled(training.page);
  const [names, ...rows] = await training.page.locator(".train-loss").evaluate(({ picture }) => picture.numbers());
  assert.deepEqual(names, ["task", "δ²", "δ² least", "δ² largest"]);
  assert.ok(rows.length > 10 && rows.every(([, middle, low, high]) => low <= middle && middle <= high));
  await training.check();
});
