// Pictures: SVG that is updated in place, with a caption, a summary for readers of the screen, and a menu.

import { dark } from "ictd/theme";
import { redraw } from "ictd/state";

const SPACE = "http://www.w3.org/2000/svg";

/** Size of text in pictures, pixels. */
export const TEXT = 13;

/** An HTML element with attributes and children; `on…` attributes are listeners. */
export function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Text from elsewhere (a file, an address) for use inside `rich`: it stays as it is written. */
export const plain = (text) => String(text).replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

const MARK = /<(\/?)(p|h2|b|i|br|sub|small|code|span)(?: class="([a-z -]+)")?>/;
const LETTERS = { "&amp;": "&", "&lt;": "<", "&gt;": ">" };

/**
 * Text with a few marks as nodes: `<b>`, `<i>`, `<sub>`, `<small>`, `<code>`, `<span class="…">`, `<p>`, `<h2>`, `<br>`. Everything else
 * is text, so that no text can become a program; nothing in the page makes elements of text in another way.
 */
export function rich(text) {
  const root = document.createDocumentFragment();
  let inside = root;
  text.split(new RegExp(MARK, "g")).forEach((part, k, parts) => {
    if (k % 4 === 0) {
      if (part) inside.append(part.replace(/&(?:amp|lt|gt);/g, (c) => LETTERS[c]));
    } else if (k % 4 === 2) {
      if (parts[k - 1]) inside = inside.parentNode ?? root;
      else {
        const element = inside.appendChild(html(part, { class: parts[k + 1] }));
        if (part !== "br") inside = element;
      }
    }
  });
  return root;
}

/** Puts text with marks into an element, where it is another than before. */
export function write(element, text) {
  if (element.written === text) return;
  element.written = text;
  element.replaceChildren(rich(text));
}

/** An SVG element with attributes. */
export function svg(tag, attributes = {}) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** A number for a reader: three digits after the point, or a power of ten where those would say nothing. */
export function num(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  const small = size !== 0 && size < 0.5 * 10 ** -digits;
  const text = small || size >= 1e5 ? value.toExponential(1) : value.toFixed(size >= 100 ? 1 : digits);
  return text.replace("e+", "e").replace(/-/g, "−");
}

/** A parameter in a formula: as many digits as the arithmetic written with it needs. */
export const exact = (value) => String(Number(value.toPrecision(6))).replace("e+", "e").replaceAll("-", "−");

/** A number for a cell: this many digits after the point, no leading zero, nothing where it rounds to 0. */
export function short(value, digits) {
  if (!Number.isFinite(value) || Number(value.toFixed(digits)) === 0) return "";
  return value
    .toFixed(Math.abs(value) >= 100 ? 0 : digits)
    .replace(/^(-?)0\./, "$1.")
    .replace("-", "−");
}

/** Below this width not even one digit fits, pixels. */
const NARROWEST = 16;

/** The most digits after the point with which all numbers fit into cells of this width, or −1: then none are written. */
export function digitsFor(values, width) {
  if (width < NARROWEST) return -1;
  for (const digits of [2, 1]) {
    const longest = values.reduce((most, value) => Math.max(most, short(value, digits).length), 0);
    if (longest * 7.2 + 3 <= width) return digits;
  }
  return -1;
}

const ENDS = {
  light: { paper: [255, 255, 255], low: [5, 80, 160], high: [178, 24, 43], back: "#ffffff" },
  dark: { paper: [23, 24, 27], low: [90, 165, 245], high: [245, 110, 110], back: "#17181b" },
};
const STEPS = 128;
/** The step of `shade` that has no colour. */
export const PAPER = STEPS;
const maps = {};

/** How light a colour is, from 0 to 1, as contrast counts it (WCAG 2). */
function lightness(rgb) {
  const [r, g, b] = rgb.map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function make(name) {
  const { paper, low, high } = ENDS[name];
  const colors = [];
  const inks = [];
  for (let k = -STEPS; k <= STEPS; k++) {
    const end = k < 0 ? low : high;
    const rgb = paper.map((p, c) => Math.round(p + ((end[c] - p) * Math.abs(k)) / STEPS));
    colors.push(`rgb(${rgb.join(",")})`);
    // Where black and white are equally far, both have a contrast of 4.58: one of them always suffices.
    inks.push(lightness(rgb) > 0.179 ? "#000000" : "#ffffff");
  }
  return { colors, inks };
}

const map = () => {
  const name = dark() ? "dark" : "light";
  return (maps[name] ??= make(name));
};

/** The step of the map of colours that a signed number has, full at ±most; `PAPER` for 0. */
export function shade(value, most) {
  const share = most > 0 && Number.isFinite(value) ? Math.max(-1, Math.min(1, value / most)) : 0;
  return Math.round(share * STEPS) + STEPS;
}

/** The colour of a step. */
export const colorOf = (step) => map().colors[step];

/** The colour of a signed number: paper for 0, red above, blue below, full at ±most. */
export const diverging = (value, most) => map().colors[shade(value, most)];

/** The colour of text on `diverging(value, most)`. */
export const inkOn = (value, most) => map().inks[shade(value, most)];

/** The largest size among finite numbers of nested lists; at least a hair, so that it can divide. */
export function most(...lists) {
  let largest = 1e-12;
  const look = (entry) => {
    if (Array.isArray(entry)) entry.forEach(look);
    else if (Number.isFinite(entry)) largest = Math.max(largest, Math.abs(entry));
  };
  lists.forEach(look);
  return largest;
}

/** Elements under one group, known by keys: what is put again is changed, what is not put again goes. */
export class Layer {
  constructor(parent, name) {
    this.group = parent.appendChild(svg("g", { class: name }));
    this.known = new Map();
    this.turn = 0;
  }

  begin() {
    this.turn++;
  }

  /** Puts an element; attributes that are as before are not touched. */
  put(key, tag, attributes, text) {
    let entry = this.known.get(key);
    if (!entry) {
      entry = { element: this.group.appendChild(svg(tag)), old: {}, text: undefined };
      this.known.set(key, entry);
    }
    entry.turn = this.turn;
    for (const name in attributes) {
      const value = attributes[name];
      if (entry.old[name] === value) continue;
      entry.old[name] = value;
      if (value === null || value === undefined) entry.element.removeAttribute(name);
      else entry.element.setAttribute(name, typeof value === "number" && !name.startsWith("data-") ? Math.round(value * 100) / 100 : value);
    }
    if (text !== undefined && entry.text !== text) {
      entry.text = text;
      entry.element.textContent = text;
    }
    return entry.element;
  }

  end() {
    for (const [key, entry] of this.known) {
      if (entry.turn === this.turn) continue;
      entry.element.remove();
      this.known.delete(key);
    }
  }
}

const room = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const picture = target.picture;
    const width = Math.floor(target.clientWidth);
    if (width === 0 || width === picture.width) continue;
    picture.width = width;
    redraw();
  }
});

/** The colours of a scale, from blue (where numbers have signs) to red. */
export function ramp(signed) {
  const colors = (signed ? [-1, 0, 1] : [0, 1]).map((value) => diverging(value, 1));
  return html("i", { class: "ramp", "data-colors": colors.join(";"), style: `background: linear-gradient(to right, ${colors})` });
}

/**
 * A picture: `root` goes into the page, `layer(name)` gives groups to draw in, `size(w, h)` sets its extent. `numbers()`, where given,
 * returns rows for "copy numbers".
 */
export class Picture {
  constructor({ title, className = "", numbers = null }) {
    this.name = title;
    this.numbers = numbers;
    this.width = 0;
    this.svg = svg("svg", { role: "img", "aria-label": title });
    this.heading = html("span", { class: "title" }, title);
    this.legend = html("span", { class: "legend" });
    this.frame = html("div", { class: "frame" }, this.svg);
    this.frame.picture = this;
    this.root = html(
      "figure",
      { class: `picture ${className}` },
      html("figcaption", {}, this.heading, this.legend, this.menu(title)),
      this.frame,
    );
    // Tests and scripts find the picture, and with it its numbers, through the page.
    this.root.picture = this;
    room.observe(this.frame);
  }

  layer(name) {
    return new Layer(this.svg, name);
  }

  /** Sets the extent; what is wider than the frame is scrolled inside it. */
  size(width, height) {
    if (this.sized === `${width},${height}`) return;
    this.sized = `${width},${height}`;
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    // Only what can be scrolled is worth a stop of the Tab key.
    if (width > this.width + 1) this.frame.tabIndex = 0;
    else if (!this.keys) this.frame.removeAttribute("tabindex");
  }

  /** The caption, with marks as `rich` has them. */
  title(text) {
    write(this.heading, text);
  }

  /** What a reader who cannot see the picture is told. */
  summary(text) {
    if (this.svg.getAttribute("aria-label") !== text) this.svg.setAttribute("aria-label", text);
  }

  /** The scale of colours, from −most to most. */
  scale(largest, signed = true) {
    const name = dark() ? "dark" : "light";
    const end = largest >= 1e4 ? largest.toExponential(1).replace("e+", "e") : String(Number(largest.toPrecision(2)));
    const said = `${name},${end},${signed}`;
    if (this.scaled === said) return;
    this.scaled = said;
    this.legend.replaceChildren(signed ? `−${end}` : "0", ramp(signed), end);
  }

  menu(title) {
    const close = () => {
      list.open = false;
    };
    const save = html("button", { type: "button", onclick: () => (saveSvg(this, title), close()) }, "Save SVG");
    const copy = html("button", { type: "button", onclick: () => (copyNumbers(this), close()) }, "Copy numbers");
    if (!this.numbers) copy.hidden = true;
    const list = html(
      "details",
      { class: "menu" },
      html("summary", { "aria-label": `Save or copy: ${title}`, title: "Save or copy" }, "⋯"),
      html("div", {}, save, copy),
    );
    list.addEventListener("focusout", (event) => {
      if (!list.contains(event.relatedTarget)) close();
    });
    list.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
    });
    return list;
  }
}

const STYLED = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-size",
  "font-family",
  "font-weight",
  "text-anchor",
  "paint-order",
  "stroke-linejoin",
];

/** Room above a saved picture for its title and its scale, pixels. */
const HEAD = 46;

/** The caption as SVG: the title in its colours, and below it the scale. */
function head({ heading, legend }, width) {
  const { fontFamily: family } = getComputedStyle(heading);
  const line = (y, more) => svg("text", { x: 8, y, "font-size": TEXT, "font-family": family, ...more });
  const title = line(TEXT - HEAD + 5);
  const walk = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const { color: fill, fontWeight, verticalAlign } = getComputedStyle(walk.currentNode.parentElement);
    const part = svg("tspan", { fill, "font-weight": fontWeight, ...(verticalAlign === "sub" ? { "font-size": "0.8em" } : {}) });
    part.textContent = walk.currentNode.data;
    title.append(part);
  }
  const ramp = legend.querySelector(".ramp");
  if (!ramp) return [title];
  const colors = ramp.dataset.colors.split(";");
  const [from, to] = [legend.firstChild.data, legend.lastChild.data];
  const fill = getComputedStyle(legend).color;
  const y = 2 * TEXT - HEAD + 10;
  const left = line(y, { fill });
  left.textContent = from;
  const start = 14 + 9 * from.length;
  const scale = svg("linearGradient", { id: "scale" });
  colors.forEach((color, k) => scale.append(svg("stop", { offset: k / (colors.length - 1), "stop-color": color })));
  const bar = svg("rect", { x: start, y: y - 9, width: Math.min(90, width / 3), height: 9, fill: "url(#scale)", stroke: fill });
  const right = line(y, { fill, x: start + Math.min(90, width / 3) + 6 });
  right.textContent = to;
  return [title, scale, left, bar, right];
}

/** Downloads a picture with the colours that it has now, which its file needs written out. */
function saveSvg(picture, title) {
  const copy = picture.svg.cloneNode(true);
  const from = picture.svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, k) => {
    const style = getComputedStyle(from[k]);
    for (const name of STYLED) element.setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute("xmlns", SPACE);
  const [width, height] = ["width", "height"].map((name) => Number(picture.svg.getAttribute(name)));
  copy.setAttribute("viewBox", `0 ${-HEAD} ${width} ${height + HEAD}`);
  copy.setAttribute("height", height + HEAD);
  const back = svg("rect", { y: -HEAD, width: "100%", height: "100%", fill: ENDS[dark() ? "dark" : "light"].back });
  copy.prepend(back, ...head(picture, width));
  const address = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  html("a", { href: address, download: `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** Copies a picture's numbers as a table with tabs, every digit of them. */
async function copyNumbers(picture) {
  const text = picture
    .numbers()
    .map((row) => row.join("\t"))
    .join("\n");
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages from disk may not use the clipboard directly; a selection may always be copied.
    const area = document.body.appendChild(html("textarea", { class: "away" }));
    area.value = text;
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
