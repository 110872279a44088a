// The page of a sweep: axes are chosen, runs are filtered, the table is sorted, and the numbers are those of summary.csv.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { folder, settled, start, visit } from "./browser.mjs";

// The last seed is one that a number of JavaScript's would not keep.
const LARGE = "9007199254740993";
const SEEDS = [...Array(20).keys(), 30, LARGE].map(String);
const PLAN = `seeds = "0..20,30,${LARGE}"
metrics = "every 10"
[set]
epochs = 20
batch = 8
[grid]
kernel = ["softmax", "linear"]
"init.gain" = [0.03, 0.3, 3.0]
`;

let browser;
let shown;
before(async () => {
  const here = folder();
  writeFileSync(join(here, "plan.toml"), PLAN);
  for (const words of [["plan.toml", "--out", "out"], ["show", "out"]]) {
    const { status, stderr } = spawnSync(process.env.ICTD, ["sweep", ...words], { cwd: here, encoding: "utf8" });
    assert.equal(status, 0, stderr);
  }
  shown = join(here, "out/show");
  browser = await start();
});
after(() => browser.close());

/** The rows of summary.csv, which has no quotes here. */
function summary() {
  const [header, ...rows] = readFileSync(join(shown, "summary.csv"), "utf8").trim().split("\n").map((line) => line.split(","));
  return rows.map((row) => Object.fromEntries(header.map((name, k) => [name, row[k]])));
}

const number = (text) => Number(text.replaceAll("−", "-"));

/** A text begins with a number and its interval, in three digits. */
function says(text, [value, low, high], what) {
  const found = text.match(/^([−\d.e]+) \(([−\d.e]+) to ([−\d.e]+)\)/)?.slice(1).map(number);
  assert.ok(found, `${what}: ${text}`);
  [value, low, high].forEach((x, k) => assert.ok(Math.abs(found[k] - x) <= 0.006 * Math.abs(x), `${what}: ${text}, expected ${x}`));
}

test("what is chosen is what the files say", async () => {
  const { page, check } = await visit(browser, pathToFileURL(join(shown, "index.html")).href);
  const rows = summary();
  assert.equal(rows.length, 6);
  assert.match(await page.locator("#about").textContent(), /^132 runs: 6 settings with 22 seeds each/);
  const choose = async (id, label) => {
    await page.locator(`#${id}`).selectOption({ label });
    await settled(page);
  };
  const cells = () => page.locator("#map [data-cell]").evaluateAll((all) => all.map((cell) => cell.getAttribute("aria-label")));
  const metric = await page.locator("#metric option:checked").textContent();

  // Other axes: what was down gives way to what is across now.
  await choose("statistic", "IQM");
  await choose("x", "kernel");
  assert.equal(await page.locator("#y option:checked").textContent(), "none: put together");
  assert.equal((await cells()).length, 2);
  await choose("y", "init.gain");
  const labels = await cells();
  assert.equal(labels.length, 6);
  for (const row of rows) {
    const place = `init.gain = ${row["init.gain"]}, kernel = ${row.kernel}: `;
    const label = labels.find((text) => text.startsWith(place));
    assert.ok(label?.endsWith(", 22 runs"), `${place} in ${labels.join("; ")}`);
    says(label.slice(place.length), ["iqm", "iqm_low", "iqm_high"].map((name) => Number(row[`${metric}_${name}`])), place);
  }
  // Shares, everything but one key put together.
  await choose("statistic", "share of TD");
  await choose("y", "none: put together");
  for (const label of await cells()) {
    const kernel = label.split(":")[0].replace("kernel = ", "");
    const of = rows.filter((row) => row.kernel === kernel);
    const share = of.reduce((sum, row) => sum + Number(row.td), 0) / of.reduce((sum, row) => sum + Number(row.runs), 0);
    assert.equal(number(label.split(": ")[1].split(" ")[0]), Number(share.toPrecision(3)), label);
  }

  // Without one of the kernels.
  await page.locator("#filters summary").click();
  await page.locator("#keys label", { hasText: "linear" }).locator("input").uncheck();
  await settled(page);
  assert.equal(await page.locator("#filtered").textContent(), ": 3 of 6 settings");
  assert.equal((await cells()).length, 1);
  assert.equal(await page.locator("#table tbody tr").count(), 3);
  await page.locator("#keys label", { hasText: "linear" }).locator("input").check();
  await settled(page);

  // Sorted by the median, upwards and downwards.
  const medians = rows.map((row) => Number(row[`${metric}_median`])).sort((a, b) => a - b);
  for (const order of [medians, medians.toReversed()]) {
    await page.locator("#table th button", { hasText: /^median/ }).click();
    const column = await page.locator("#table tbody tr td:last-child").allTextContents();
    assert.equal(column.length, 6);
    column.forEach((text, k) => assert.ok(Math.abs(number(text) - order[k]) <= 0.006 * Math.abs(order[k]), `${text} at ${k}, expected ${order[k]}`));
  }

  // The runs of a cell, and the command of one of them.
  await choose("y", "init.gain");
  await page.locator("#map [data-cell]").first().click();
  assert.deepEqual(await page.locator("#cell [data-seed]").allTextContents(), SEEDS);
  const command = () => page.locator("#cell code").textContent();
  assert.match(await command(), / --seeds 0\.\.20$/);
  assert.match(await page.locator("#cell").textContent(), /The first 20 of 22 seeds\./);
  await page.locator("#cell [data-seed]").last().click();
  assert.match(await command(), / --seeds 9007199254740993\.\.9007199254740994$/);
  assert.doesNotMatch(await page.locator("#cell").textContent(), /The first/);
  await check();
});
