// A browser with a page in it, the explorer above all, and what a page may never do: say something on the console, or ask anything of the network.

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

/** The built page. */
export const address = pathToFileURL(process.env.ICTD_EXPLORER).href;

// A browser that is kept off the network says so at every start unless it is told not to try.
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** Starts the browser; `close` ends it. */
export const start = () => chromium.launch({ executablePath: process.env.CHROMIUM, args: QUIET });

/** A folder for the files of a test. */
export const folder = () => mkdtempSync(join(tmpdir(), "ictd-page-"));

/**
 * Opens a page in a window of its own. What it did that it may not is found by `check`, which every test calls at its end.
 */
export async function visit(browser, url, { width = 1280, height = 900, scheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce", acceptDownloads: true, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => faults.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const asked = request.url();
    if (!/^(data|blob):/.test(asked) && asked.split("#")[0] !== url.split("#")[0]) faults.push(`request: ${asked.slice(0, 120)}`);
  });
  await page.goto(url);
  const check = async () => {
    assert.deepEqual(faults, []);
    await context.close();
  };
  return { page, check };
}

/** Opens the explorer at an address fragment and waits until it shows something. */
export async function open(browser, { hash = "", ...looks } = {}) {
  const { page, check } = await visit(browser, address + hash, looks);
  await page.evaluate(() => window.ictd.ready);
  await page.locator("#picture > *").first().waitFor({ state: "attached" });
  await settled(page);
  return { page, check };
}

/** Waits until two frames in a row have been drawn, and so every change so far. */
export const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));

/** The one line in which the page says that something is wrong; empty where nothing is. */
export const notice = (page) => page.locator("#notice").evaluate((element) => (element.hidden ? "" : element.textContent));

/** What the page says about the number under the pointer or the keyboard's cursor: title and lines. */
export const formula = (page) => page.locator("#formula > *").allTextContents();

/** The number that a line of a formula comes to, after its last equals sign: three digits of every number are written. */
export function arithmetic(line) {
  const signs = { "÷": "/", "·": "*", "−": "-", "²": "**2", "[": "(", "]": ")" };
  const written = line.split("=").at(-1).replace(/\d+ more: /g, "").replace(/[÷·−²[\]]/g, (sign) => signs[sign]);
  return Function(`return ${written}`)();
}
