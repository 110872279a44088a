// Scene 2: eigenvalues and verdict are those of the certificate, and what is suggested works.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { folder, formula, notice, open, settled, start } from "./browser.mjs";
import { near, onContext, same } from "./cli.mjs";

let browser;
before(async () => (browser = await start()));
after(() => browser.close());

const verdict = (page) => page.locator('.verdict[data-fresh="true"]');

/** Compares what is shown with `ictd certify`; gives the certificate. */
async function agrees(page) {
  await settled(page);
  await verdict(page).waitFor();
  const { context, options } = await page.evaluate(() => window.ictd.shown());
  const unit_norm = await page.getByLabel("Features of length 1").isChecked();
  const asked = { gamma: options.gamma, kernel: options.kernel, temperature: options.temperature, step_size: options.step_size, layers: options.layers };
  const certificate = onContext(folder(), "certify", context, { ...asked, ...(unit_norm ? { unit_norm } : {}) });
  assert.equal(await page.locator("#depth-status").textContent(), certificate.status);
  const eigenvalues = await page.locator(".spectrum [data-re]").evaluateAll((dots) => dots.map(({ dataset }) => Math.hypot(dataset.re, dataset.im)));
  const { spectral_radius, norm_inf } = certificate.contraction;
  near(Math.max(...eigenvalues), spectral_radius, "spectral radius", 1);
  for (const [key, value] of Object.entries({ norm_inf, spectral_radius, margin: certificate.stability.margin, largest_stable: certificate.steps.largest_stable })) {
    const shown = await page.locator(`[data-fact="${key}"]`).getAttribute("data-value");
    if (value === null) assert.equal(shown, "null", key);
    else near(Number(shown), value, key, Math.max(1, Math.abs(value)));
  }
  const options_ = await page.locator(".suggestion").evaluateAll((buttons) => buttons.map(({ dataset }) => dataset.options));
  const known = certificate.suggestions.map(({ options }) => options);
  for (const one of options_) assert.ok(known.includes(one) || one.startsWith("--layers"), `${one} is suggested by ${known}`);
  return certificate;
}

test("the spectrum and the verdict are those of the certificate", async () => {
  const { page, check } = await open(browser, { hash: "#scene=depth" });
  const presets = await page.locator("[data-preset]").evaluateAll((buttons) => buttons.map(({ dataset }) => dataset.preset));
  assert.ok(presets.length >= 4);
  await agrees(page);
  const seen = new Set();
  for (const preset of presets) {
    await page.locator(`[data-preset="${preset}"]`).click();
    const { status } = await agrees(page);
    seen.add(status);
  }
  assert.ok(seen.has("refused") && seen.size > 1, [...seen].join(" "));
  await check();
});

test("a sharp kernel on raw features fails, the suggestion repairs it, and it can be undone", async () => {
  const { page, check } = await open(browser, { hash: "#scene=depth" });
  await page.locator("[data-preset]", { hasText: "no step size works" }).click();
  const before = await agrees(page);
  assert.equal(before.status, "refused");
  await page.locator(".suggestion").first().click();
  const repaired = await agrees(page);
  assert.notEqual(repaired.status, "refused");
  await page.locator("#undo-suggestion").click();
  same(await agrees(page), before, "undone", ["reasons"]);
  await check();
});

test("the first point is read as the others are", async () => {
  const { page, check } = await open(browser, { hash: "#scene=depth" });
  await page.locator(".spectrum .frame").focus();
  await page.keyboard.press("ArrowRight");
  await settled(page);
  const [first] = await formula(page);
  assert.match(first, /^Eigenvalue/);
  await page.keyboard.press("ArrowRight");
  await settled(page);
  assert.notEqual((await formula(page))[0], first);
  await check();
});

test("a margin that is not about all states is not praised", async () => {
  const { page, check } = await open(browser, { hash: "#scene=depth&n=1" });
  await verdict(page).waitFor();
  const margin = page.locator('[data-fact="margin"]');
  assert.ok(Number(await page.locator('[data-fact="norm_inf"]').getAttribute("data-value")) >= 1);
  assert.notEqual(await margin.getAttribute("class"), "good");
  assert.match(await margin.locator("xpath=following-sibling::*").textContent(), /only reached/);
  assert.equal(await notice(page), "");
  await check();
});
