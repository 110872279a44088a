// How the page looks, at the width of a desktop and of a phone, light and dark: nothing overlaps, nothing is cut off, nothing is too
// small or too faint to read.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { open, settled, start } from "./browser.mjs";

/** Pictures of every scene are left here, to be looked at. */
const PICTURES = process.env.ICTD_PICTURES;
/** The smallest text in a picture, CSS pixels. */
const SMALLEST = 13;
/** Contrast of text (WCAG 2, AA). */
const CONTRAST = 4.5;

let browser;
before(async () => (browser = await start()));
after(() => browser.close());

/** Runs in the page: what is wrong with what can be seen. */
function faults([smallest, least]) {
  const found = [];
  const numbers = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a) + 0.05, luminance(b) + 0.05];
    return Math.max(x, y) / Math.min(x, y);
  };
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const opaque = (color) => color.length === 3 || color[3] > 0.5;
  // What lies behind a text: the last opaque shape before it in the picture that covers its middle, or the nearest background.
  const behind = (element) => {
    const box = element.getBoundingClientRect();
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const svg = element.closest("svg");
    if (svg) {
      let last = null;
      for (const shape of svg.querySelectorAll("rect, circle, path")) {
        if (!(shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
        const style = getComputedStyle(shape);
        const color = numbers(style.fill);
        if (style.fill === "none" || !opaque(color) || Number(style.fillOpacity) * Number(style.opacity) < 0.5) continue;
        const b = shape.getBoundingClientRect();
        const inside = b.left <= x && x <= b.right && b.top <= y && y <= b.bottom;
        // Cells of one colour are one path: its box covers more than it fills.
        if (inside && shape.isPointInFill(new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse()))) last = color;
      }
      if (last) return last;
    }
    for (let other = element; other; other = other.parentElement) {
      const color = numbers(getComputedStyle(other).backgroundColor);
      if (color.length && opaque(color) && getComputedStyle(other).backgroundColor !== "rgba(0, 0, 0, 0)") return color;
    }
    return numbers(getComputedStyle(document.documentElement).backgroundColor);
  };
  const name = (element) => `'${element.textContent.trim().slice(0, 40)}'`;
  const own = [...document.querySelectorAll("body *")].filter(
    (element) => element.tagName !== "SCRIPT" && element.tagName !== "STYLE" && (element.tagName === "text" || (!element.closest("svg") && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))),
  );
  for (const element of own.filter(seen)) {
    const style = getComputedStyle(element);
    // What cannot be used for now may be faint.
    if (element.closest(":disabled") || element.closest(".skip")) continue;
    const ratio = contrast(numbers(element.tagName === "text" ? style.fill : style.color), behind(element));
    if (!(ratio >= least)) found.push(`${name(element)} has contrast ${ratio.toFixed(2)}`);
    if (element.tagName === "text" && !(parseFloat(style.fontSize) >= smallest)) found.push(`${name(element)} is ${style.fontSize}`);
  }
  const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.34 * Math.min(a.height, b.height);
  for (const svg of [...document.querySelectorAll("#picture svg")].filter(seen)) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter(seen).map((text) => [name(text), text.getBoundingClientRect()]);
    for (const [text, box] of texts) if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) found.push(`${svg.getAttribute("aria-label")?.slice(0, 30)}: ${text} is cut off`);
    texts.forEach(([a, box], i) => texts.slice(0, i).forEach(([b, other]) => overlap(box, other) && found.push(`${svg.getAttribute("aria-label")?.slice(0, 30)}: ${a} overlaps ${b}`)));
  }
  for (const control of [...document.querySelectorAll("button, input, select, textarea, a[href], summary, [tabindex='0']")].filter(seen)) {
    // Hidden from readers of screens: another control stands for it.
    if (control.closest("[aria-hidden='true']")) continue;
    const said = control.getAttribute("aria-label") || [...(control.labels ?? [])].map((label) => label.textContent).join(" ") || control.textContent;
    if (!said.trim()) found.push(`a ${control.tagName.toLowerCase()} without a name: ${control.outerHTML.slice(0, 80)}`);
  }
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) found.push(`the page is ${page.scrollWidth} wide`);
  return found;
}

const scenes = async () => {
  const { page, check } = await open(browser);
  const keys = await page.locator("[data-scene]").evaluateAll((tabs) => tabs.map(({ dataset }) => dataset.scene));
  await check();
  return keys;
};

for (const width of [1280, 390]) {
  for (const scheme of ["light", "dark"]) {
    test(`${width} pixels wide, ${scheme}`, async () => {
      for (const scene of await scenes()) {
        const { page, check } = await open(browser, { hash: `#scene=${scene}`, width, height: width > 500 ? 900 : 844, scheme });
        await settled(page);
        if (PICTURES) {
          mkdirSync(PICTURES, { recursive: true });
          await page.screenshot({ path: `${PICTURES}/${scene}-${width}-${scheme}.png`, fullPage: true });
        }
        assert.deepEqual(await page.evaluate(faults, [SMALLEST, CONTRAST]), [], `scene ${scene}`);
        await check();
      }
    });
  }
}

test("extremes: nothing is cut off or covers another", async () => {
  for (const hash of ["kernel=linear&layers=60&alpha=8&layer=60", "kernel=linear&layers=60&alpha=8&layer=60&n=40", "own=100,-1,0~1:1;-100,1,0~0:0.5,1:0.5&alpha=8&layers=60&layer=40", "features=one-hot&states=16&n=60"]) {
    const { page, check } = await open(browser, { hash: `#${hash}` });
    assert.deepEqual(await page.evaluate(faults, [SMALLEST, CONTRAST]), [], hash);
    const wide = await page.locator(".ledger td").evaluateAll((cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map(({ textContent }) => textContent));
    assert.deepEqual(wide, [], `${hash}: the ledger`);
    await check();
  }
});

test("on paper there are pictures and no controls", async () => {
  for (const width of [1280, 390]) {
    const { page, check } = await open(browser, { width, hash: "#tour=2" });
    await page.emulateMedia({ media: "print" });
    for (const part of [".rail", ".tour", ".tools", ".menu"]) assert.equal(await page.locator(`${part}:visible`).count(), 0, part);
    assert.ok(await page.locator(".weights svg").isVisible());
    await check();
  }
});
