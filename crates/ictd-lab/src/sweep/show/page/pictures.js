
// Pictures as text of SVG. What can be clicked has class "mark" and the place of its cell.

function escaped(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

function cut(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

let ruler;

/** Width of a name in a picture. */
function wide(text) {
  if (!ruler) {
    ruler = document.createElement("canvas").getContext("2d");
    // That of the style sheet.
    ruler.font = "12px system-ui, sans-serif";
  }
  return ruler.measureText(text).width;
}

function svg(width, height, label, body) {
  const size = `width="${Math.ceil(width)}" height="${Math.ceil(height)}" viewBox="0 0 ${Math.ceil(width)} ${Math.ceil(height)}"`;
  return `<svg ${size} role="group" aria-label="${escaped(label)}">${body}</svg>`;
}

function text(x, y, anchor, words, kind = "name") {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" class="${kind}">${escaped(words)}</text>`;
}

/** Round numbers from one end to the other, about as many as asked for: 1, 2 or 5 times a power of ten apart, or powers of ten. */
function ticks(low, high, isLog, most = 6) {
  const [least, largest] = [low - 1e-9 * Math.abs(low), high + 1e-9 * Math.abs(high)];
  const exponents = isLog ? [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))] : [0, -1];
  const powers = [];
  for (let e = exponents[0]; e <= exponents[1]; e++) powers.push(e);
  const inside = (list) => list.filter((x) => x >= least && x <= largest);
  const tens = inside(powers.map((e) => Number(`1e${e}`)));
  if (tens.length > 2) return tens.filter((_, k) => k % Math.ceil(tens.length / most) === 0);
  const few = inside(powers.flatMap((e) => [1, 2, 5].map((f) => Number(`${f}e${e}`))));
  if (few.length > 1) return few;
  // The smallest step that gives no more than that.
  const size = 10 ** Math.floor(Math.log10((high - low) / most));
  const ends = (step) => [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  const step = [1, 2, 5, 10, 20].map((f) => f * size).find((step) => ends(step)[1] - ends(step)[0] < most) ?? high - low;
  const [first, last] = ends(step);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

/** A round number in as many digits as it has. */
function exact(x) {
  const size = Math.abs(x);
  const text = x === 0 || (size >= 1e-4 && size < 1e6) ? String(x) : x.toExponential().replace("+", "");
  return text.replace(/-/g, "−");
}

/** Numbers to [0, 1], and numbers for ticks; logarithmic where asked for and possible. */
function scale(low, high, isLog) {
  const log = isLog && low > 0;
  const at = (x) => (log ? Math.log(x) : x);
  if (!(high > low)) return { at: () => 0.5, ticks: [low].map((x) => [x, short(x)]) };
  return { at: (x) => (at(x) - at(low)) / (at(high) - at(low)), ticks: ticks(low, high, log).map((x) => [x, exact(x)]) };
}

/** Names below an axis: none leaves the room from `left` to `right`, and those that would touch others are left out. */
function below(names, at, y, left, right) {
  let [free, body] = [left, ""];
  names.forEach((name, k) => {
    const half = wide(name) / 2;
    const middle = Math.min(Math.max(at(k), left + half), right - half);
    if (middle - half < free) return;
    free = middle + half + 4;
    body += text(middle, y, "middle", name);
  });
  return body;
}

/** Dark blue for 0 to light yellow for 1, and black or white on it. */
function shade(share) {
  const ends = [[12, 44, 95], [253, 231, 150]];
  const rgb = [0, 1, 2].map((k) => Math.round(ends[0][k] + share * (ends[1][k] - ends[0][k])));
  const ink = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 140 ? "#000" : "#fff";
  return { fill: `rgb(${rgb.join(",")})`, ink };
}

function mark(k, chosen, label, body) {
  return `<g class="mark${k === chosen ? " is-chosen" : ""}" data-cell="${k}" tabindex="0" role="button" aria-label="${escaped(label)}"><title>${escaped(label)}</title>${body}</g>`;
}

/** A map: `cells` row by row, each with a value and a label, or null. */
function heatMap({ x, y, xs, ys, cells, range, isLog, chosen, room }) {
  const names = ys.map((name) => cut(name, 28));
  const left = Math.max(wide(y), ...names.map(wide)) + 12;
  const least = Math.max(44, Math.min(110, Math.max(...xs.map(wide)) + 8));
  const width = Math.max(xs.length > 40 ? 12 : least, Math.min(110, (room - left - 82) / xs.length));
  const [height, top] = [30, 8];
  const to = scale(...range, isLog);
  let body = "";
  cells.forEach((cell, k) => {
    if (!cell) return;
    const [i, j] = [Math.floor(k / xs.length), k % xs.length];
    const [cx, cy] = [left + j * width, top + i * height];
    const { fill, ink } = shade(Math.min(1, Math.max(0, to.at(cell.value))));
    const number = width >= 40 ? `<text x="${cx + width / 2}" y="${cy + 19}" text-anchor="middle" fill="${ink}">${short(cell.value)}</text>` : "";
    const edge = k === chosen ? ' class="chosen"' : "";
    body += mark(k, chosen, cell.label, `<rect x="${cx + 0.5}" y="${cy + 0.5}" width="${width - 1}" height="${height - 1}" fill="${fill}"${edge}/>${number}`);
  });
  names.forEach((name, i) => (body += text(left - 6, top + i * height + 19, "end", name)));
  const bottom = top + ys.length * height;
  const end = left + xs.length * width;
  body += below(xs.map((name) => cut(name, 16)), (j) => left + (j + 0.5) * width, bottom + 16, left, end + 8);
  body += text(left + (xs.length * width) / 2, bottom + 34, "middle", x, "soft") + text(left - 6, bottom + 16, "end", y, "soft");
  const bar = end + 14;
  const barHeight = Math.max(60, bottom - top);
  for (let k = 0; k < 30; k++) {
    body += `<rect x="${bar}" y="${top + (barHeight * (29 - k)) / 30}" width="10" height="${barHeight / 30 + 0.5}" fill="${shade((k + 0.5) / 30).fill}"/>`;
  }
  to.ticks.forEach(([x, name]) => (body += text(bar + 14, top + 4 + barHeight * (1 - to.at(x)), "start", name, "soft")));
  return svg(bar + 66, Math.max(bottom + 42, top + barHeight + 12), `Map by ${y} and ${x}`, body);
}

/** Axes of a plot with lines at round numbers. */
function frame({ left, top, width, height, to, label }) {
  let body = "";
  for (const [x, name] of to.ticks) {
    const y = top + height * (1 - to.at(x));
    body += `<path class="grid" d="M${left} ${y}h${width}"/>` + text(left - 6, y + 4, "end", name);
  }
  return body + `<path class="axis" d="M${left} ${top}v${height}h${width}"/>` + text(left, top - 8, "start", label, "soft");
}

/** Room for the names of ticks at the left of a plot. */
function beside(to) {
  return 12 + Math.max(52, ...to.ticks.map(([, name]) => wide(name)));
}

/** Dots with intervals along a key; joined where its values are numbers. */
function along({ x, xs, cells, range, isLog, isNumeric, label, chosen, room }) {
  const to = scale(...range, isLog);
  const [left, top, height] = [beside(to), 26, 230];
  const step = Math.max(26, Math.min(110, (room - left - 20) / xs.length));
  const width = step * xs.length;
  const up = (value) => top + height * (1 - Math.min(1, Math.max(0, to.at(value))));
  const at = (k) => left + (k + 0.5) * step;
  let body = frame({ left, top, width, height, to, label });
  const known = cells.map((cell, k) => [cell, k]).filter(([cell]) => cell);
  if (isNumeric) body += `<path class="line" d="${known.map(([cell, k], i) => `${i ? "L" : "M"}${at(k)} ${up(cell.value)}`).join("")}"/>`;
  for (const [cell, k] of known) {
    const [low, high] = cell.interval ?? [cell.value, cell.value];
    const area = `<rect x="${at(k) - step / 2}" y="${top}" width="${step}" height="${height}" fill="transparent"/>`;
    const ring = k === chosen ? ' class="dot chosen"' : ' class="dot"';
    body += mark(k, chosen, cell.label, `${area}<path class="line" d="M${at(k)} ${up(low)}V${up(high)}"/><circle${ring} cx="${at(k)}" cy="${up(cell.value)}" r="5"/>`);
  }
  body += below(xs.map((name) => cut(name, 16)), at, top + height + 18, left - 40, left + width + 12);
  body += text(left + width / 2, top + height + 38, "middle", x, "soft");
  return `<div class="s0">${svg(left + width + 16, top + height + 48, `${label} along ${x}`, body)}</div>`;
}

/** Lines over steps with bands: each with steps, three lists of numbers and the number of its colour. */
function lines({ all, label, isLog, room }) {
  const numbers = all.flatMap((line) => line.bands.flat()).filter((y) => y !== null && (!isLog || y > 0));
  const ends = all.flatMap((line) => line.steps);
  if (!numbers.length) return "";
  const to = scale(numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b)), isLog);
  const [first, last] = [ends.reduce((a, b) => Math.min(a, b)), ends.reduce((a, b) => Math.max(a, b))];
  const [left, top, height] = [beside(to), 26, 280];
  const width = Math.max(200, room - left - 40);
  const up = (value) => top + height * (1 - to.at(value));
  // From the first point on, as the figure.
  const across = scale(first, last, false);
  const at = (step) => left + width * across.at(step);
  let body = frame({ left, top, width, height, to, label });
  for (const { steps, bands, color } of all) {
    const shown = steps.map((_, k) => k).filter((k) => bands.every((band) => band[k] != null && (!isLog || band[k] > 0)));
    const path = (list, band) => list.map((k) => `${at(steps[k]).toFixed(1)} ${up(band[k]).toFixed(1)}`).join("L");
    if (!shown.length) continue;
    body += `<g class="s${color}"><path class="band" d="M${path(shown, bands[1])}L${path([...shown].reverse(), bands[2])}Z"/><path class="line" d="M${path(shown, bands[0])}"/></g>`;
  }
  body += below(across.ticks.map(([, name]) => name), (k) => at(across.ticks[k][0]), top + height + 18, left - 40, left + width + 30);
  body += text(left + width / 2, top + height + 38, "middle", "gradient step", "soft");
  return svg(left + width + 34, top + height + 48, `${label} over gradient steps`, body);
}
