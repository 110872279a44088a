
// What is chosen, and what follows from it.

const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const seeds = data.seeds.length;
const seedOf = (row) => BigInt(data.seeds[numberOf(row) % seeds]);
const [shares, centres] = [data.ends, ["iqm", "median", "mean"]];
const words = { td: "share of TD", mirror: "share of mirror", none: "share of neither", diverged: "share of diverged", iqm: "IQM", median: "median", mean: "mean" };
const [MOST_ROWS, MOST_LISTED, MOST_LINES, FIRST_LINES, MOST_TYPED] = [500, 200, 8, 4, 20];

/** Whether most runs of a setting have numbers: curves of those that diverge leave no room for others. */
function isMostlyFinite(setting) {
  const counts = data.counts[setting];
  return 2 * counts[data.ends.indexOf("diverged")] <= counts.reduce((a, b) => a + b, 0);
}

const state = {
  metric: data.view.metric,
  statistic: data.view.statistic,
  x: data.view.x,
  y: data.view.y,
  hidden: data.keys.map(() => new Set()),
  hiddenEnds: new Set(),
  cell: null,
  seed: null,
  curve: data.view.curve,
  isLog: false,
  lines: new Set(data.bands.map((_, k) => k).filter((k) => data.bands[k]?.steps.length && isMostlyFinite(k)).slice(0, FIRST_LINES)),
  sort: { column: 0, up: true },
};

/** The rows of every setting among the runs that are there one by one. */
const rows = data.settings.map(() => []);
if (data.runs) for (let row = 0; row < data.done; row++) rows[Math.floor(numberOf(row) / seeds)].push(row);

function numberOf(row) {
  return data.runs.numbers ? data.runs.numbers[row] : row;
}

function isShown(setting) {
  return data.settings[setting].every((value, key) => !state.hidden[key].has(value));
}

function name(setting) {
  return data.axes.flat().map((key) => `${data.keys[key]} = ${data.values[key][data.settings[setting][key]]}`).join(", ") || "the only setting";
}

/** Runs of some settings: how many ended in what, and the metric of those that have it. */
function sample(settings) {
  const counts = [0, 0, 0, 0];
  const values = [];
  for (const setting of settings) {
    if (!data.runs) data.counts[setting].forEach((count, end) => (counts[end] += count));
    for (const row of rows[setting]) {
      const end = Number(data.runs.ends[row]);
      if (state.hiddenEnds.has(end)) continue;
      counts[end] += 1;
      const value = data.runs.values[state.metric][row];
      if (value !== null) values.push(value);
    }
  }
  return { settings, counts, total: counts.reduce((a, b) => a + b, 0), sorted: values.sort((a, b) => a - b) };
}

/** A statistic of a sample: the program's own where it has it. */
function estimate(found, statistic) {
  const end = shares.indexOf(statistic);
  if (end >= 0) return found.total ? { value: found.counts[end] / found.total, interval: wilson(found.counts[end], found.total) } : null;
  const known = (setting) => data.estimates[state.metric][setting][centres.indexOf(statistic)];
  const count = (setting) => data.numbers[state.metric][setting];
  if (found.settings.length === 1 && !state.hiddenEnds.size) {
    const [value, low, high] = known(found.settings[0]);
    return value === null ? null : { value, interval: low === null ? null : [low, high] };
  }
  if (data.runs) return found.sorted.length ? { value: centre(statistic, found.sorted), interval: resampled(statistic, found.sorted) } : null;
  const all = found.settings.filter((setting) => count(setting) > 0);
  const total = all.reduce((sum, setting) => sum + count(setting), 0);
  return total ? { value: all.reduce((sum, setting) => sum + count(setting) * known(setting)[0], 0) / total, interval: null } : null;
}

function counted(number, thing) {
  return `${number} ${thing}${number === 1 ? "" : "s"}`;
}

function said(found) {
  return found ? short(found.value) + (found.interval ? ` (${short(found.interval[0])} to ${short(found.interval[1])})` : "") : "–";
}

/** The settings of every cell, those that have none left out; along the only axis there is one row. */
function cells() {
  const [xs, ys] = [state.x, state.y].map((key) => (key === null ? null : data.values[key].map((_, k) => k).filter((k) => !state.hidden[key].has(k))));
  const members = new Map();
  data.settings.forEach((values, setting) => {
    if (!isShown(setting)) return;
    const [j, i] = [xs.indexOf(values[state.x]), ys ? ys.indexOf(values[state.y]) : 0];
    const k = i * xs.length + j;
    members.set(k, [...(members.get(k) ?? []), setting]);
  });
  const label = (key, value) => `${data.keys[key]} = ${data.values[key][value]}`;
  const all = Array.from({ length: xs.length * (ys ? ys.length : 1) }, (_, k) => {
    const found = sample(members.get(k) ?? []);
    const shown = found.total ? estimate(found, state.statistic) : null;
    const place = [...(ys ? [label(state.y, ys[Math.floor(k / xs.length)])] : []), label(state.x, xs[k % xs.length])].join(", ");
    return shown && { ...shown, found, place, label: `${place}: ${said(shown)}, ${counted(found.total, "run")}` };
  });
  return { xs: xs.map((k) => data.values[state.x][k]), ys: ys && ys.map((k) => data.values[state.y][k]), all };
}

function title() {
  return shares.includes(state.statistic) ? words[state.statistic] : `${words[state.statistic]} of ${data.metrics[state.metric]}`;
}

function drawMap() {
  find("map-title").textContent = title();
  if (state.x === null) {
    find("map").innerHTML = "";
    find("map").hidden = true;
    find("map-note").textContent = "Nothing varies but seeds.";
    return;
  }
  const { xs, ys, all } = cells();
  const numbers = all.filter(Boolean).flatMap((cell) => (ys ? [cell.value] : [cell.value, ...(cell.interval ?? [])]));
  const [low, high] = [numbers.reduce((a, b) => Math.min(a, b), Infinity), numbers.reduce((a, b) => Math.max(a, b), -Infinity)];
  const isShare = shares.includes(state.statistic);
  const range = isShare ? [0, 1] : [low, high];
  const shared = { x: data.labels[state.x], xs, cells: all, range, isLog: !isShare && low > 0 && high > 100 * low, chosen: state.cell, room: find("map").clientWidth - 16 };
  const isNumeric = xs.every((value) => Number.isFinite(Number(value)));
  find("map").innerHTML = !numbers.length ? "No runs." : ys ? heatMap({ ...shared, y: data.labels[state.y], ys }) : along({ ...shared, isNumeric, label: title() });
  const pooled = data.axes.filter((keys) => !keys.includes(state.x) && !keys.includes(state.y)).flat().map((key) => data.keys[key]);
  const interval = isShare ? "95 % intervals: Wilson" : "95 % intervals: bootstrap";
  const mixed = !data.runs && !isShare && pooled.length ? " A cell of several settings has the mean of theirs, weighted by runs." : "";
  find("map-note").textContent = `${pooled.length ? `Over all values of ${pooled.join(", ")}. ` : ""}${interval}. Choose a cell to see its runs.${mixed}`;
  drawCell(state.cell === null ? null : all[state.cell]);
}

const isRange = (list) => list.every((seed, k) => seed === list[0] + BigInt(k));

/** Seeds as `--seeds` takes them: one alone is a range, as N means 0..N. */
function written(list) {
  return isRange(list) ? `${list[0]}..${list[0] + BigInt(list.length)}` : list.join(",");
}

function drawCell(cell) {
  const section = find("cell");
  section.hidden = !cell;
  if (!cell) return;
  const { found } = cell;
  const counts = data.ends.map((end, k) => `${found.counts[k]} ${end}`).join(", ");
  let html = `<h2>${escaped(cell.place)}</h2><p>${counted(found.total, "run")}: ${counts}. ${escaped(title())}: ${said(cell)}.</p>`;
  let left = MOST_LISTED;
  for (const setting of found.settings) {
    const own = rows[setting].filter((row) => !state.hiddenEnds.has(Number(data.runs.ends[row])));
    const list = own.map(seedOf);
    const chosen = state.seed && state.seed.setting === setting ? [state.seed.seed] : data.runs ? list : data.seeds.map(BigInt);
    if (left <= 0 || (data.runs && !own.length)) continue;
    const typed = isRange(chosen) ? chosen : chosen.slice(0, MOST_TYPED);
    html += `<h3>${escaped(name(setting))}</h3><code class="command" tabindex="0">${escaped(`${data.command}${data.changes[setting]} --seeds ${written(typed)}`)}</code>`;
    if (typed.length < chosen.length) html += `<p class="small">The first ${typed.length} of ${counted(chosen.length, "seed")}.</p>`;
    if (!data.runs) continue;
    html += `<div class="scroll"><table><tr><th>seed</th><th class="word">ended in</th><th>${escaped(data.metrics[state.metric])}</th></tr>`;
    own.slice(0, left).forEach((row, k) => {
      html += `<tr><td><button type="button" data-seed="${list[k]}" data-setting="${setting}">${list[k]}</button></td><td class="word">${data.ends[Number(data.runs.ends[row])]}</td><td>${short(data.runs.values[state.metric][row])}</td></tr>`;
    });
    html += "</table></div>";
    left -= own.length;
  }
  section.innerHTML = html + (left < 0 ? `<p class="small">${-left} or more other runs are not listed; filters make them fewer.</p>` : "");
}

function drawCurves() {
  if (!data.curves.length) return;
  find("curves").hidden = false;
  // Settings that have no point of this curve have no place among its names.
  const chosen = [...state.lines].filter((setting) => data.bands[setting]?.lines[state.curve][0].some((y) => y !== null));
  const all = chosen.map((setting, color) => ({ steps: data.bands[setting].steps, bands: data.bands[setting].lines[state.curve], color }));
  find("lines").innerHTML = lines({ all, label: data.curves[state.curve], isLog: state.isLog, room: find("lines").clientWidth - 16 }) || "Nothing was measured, or no setting is ticked below.";
  const keys = chosen.map((setting, color) => `<span class="s${color}"><span class="key">—</span> ${escaped(name(setting))}</span>`).join(" · ");
  const without = data.bands.some((bands) => !bands) ? " Curves of later settings are in the folder curves." : "";
  find("lines-note").innerHTML = `${keys}${keys ? ". " : ""}Line: ${words[data.view.line]} of the seeds; band: 25–75 % of them. At most ${MOST_LINES} settings.${without}`;
}

/** The columns of the table: heading, what is sorted by, what is shown. */
function columns() {
  const share = (found) => estimate(found, "td");
  const middle = (found) => estimate(found, "iqm");
  const value = (key) => (found) => {
    const text = data.values[key][data.settings[found.settings[0]][key]];
    return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  };
  const metric = data.metrics[state.metric];
  return [
    ...data.axes.flat().map((key) => ({ name: data.keys[key], word: true, of: value(key), text: (found) => data.values[key][data.settings[found.settings[0]][key]] })),
    { name: "runs", of: (found) => found.total },
    ...data.ends.map((end, k) => ({ name: end, of: (found) => found.counts[k] })),
    { name: "share of TD", of: (found) => share(found)?.value, text: (found) => said(share(found)) },
    { name: `${metric}: IQM`, of: (found) => middle(found)?.value, text: (found) => said(middle(found)) },
    { name: "median", of: (found) => estimate(found, "median")?.value, text: (found) => short(estimate(found, "median")?.value ?? null) },
  ];
}

function drawTable() {
  const all = columns();
  const { column, up } = state.sort;
  const hasCurves = data.curves.length > 0;
  const found = data.settings.map((_, setting) => setting).filter(isShown).map((setting) => sample([setting]));
  // In the order of the plan until a heading is chosen.
  if (column > 0) {
    const of = (entry) => all[column - 1].of(entry) ?? -Infinity;
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    found.sort((a, b) => (up ? 1 : -1) * compare(of(a), of(b)));
  }
  const heads = all.map((c, k) => `<th${c.word ? ' class="word"' : ""} aria-sort="${column === k + 1 ? (up ? "ascending" : "descending") : "none"}"><button type="button" data-column="${k + 1}">${escaped(c.name)}${column === k + 1 ? (up ? " ↑" : " ↓") : ""}</button></th>`);
  const tick = (setting) => `<td><input type="checkbox" data-line="${setting}" aria-label="Curves of ${escaped(name(setting))}"${state.lines.has(setting) ? " checked" : ""}${data.bands[setting] ? "" : " disabled"}></td>`;
  const body = found.slice(0, MOST_ROWS).map((entry) => `<tr>${hasCurves ? tick(entry.settings[0]) : ""}${all.map((c) => `<td${c.word ? ' class="word"' : ""}>${escaped(c.text ? c.text(entry) : c.of(entry))}</td>`).join("")}</tr>`);
  find("table").innerHTML = `<thead><tr>${hasCurves ? "<th>curves</th>" : ""}${heads.join("")}</tr></thead><tbody>${body.join("")}</tbody>`;
  find("table-note").textContent = found.length > MOST_ROWS ? `${MOST_ROWS} of ${found.length} settings; summary.csv has all.` : "";
}

function draw() {
  drawMap();
  drawCurves();
  drawTable();
  // What is wider than the page says so: some browsers hide bars that scroll.
  for (const box of document.querySelectorAll(".scroll")) box.classList.toggle("is-wide", box.scrollWidth > box.clientWidth + 1);
  const settings = data.settings.filter((_, setting) => isShown(setting)).length;
  find("filtered").textContent = settings < data.settings.length || state.hiddenEnds.size ? `: ${settings} of ${data.settings.length} settings${state.hiddenEnds.size ? ", some ends hidden" : ""}` : "";
}

function select(id, label, options, chosen) {
  const list = options.map(([value, name]) => `<option value="${value}"${String(value) === String(chosen) ? " selected" : ""}>${escaped(name)}</option>`);
  return `<label>${label}<select id="${id}">${list.join("")}</select></label>`;
}

function start() {
  const part = data.done < data.total ? `${data.done} of ${counted(data.total, "run")} so far` : counted(data.total, "run");
  const each = data.runs ? "" : " There are too many runs to have each of them here: cells show settings.";
  const lost = data.metrics_left_out ? ` ${data.metrics_left_out} metrics are left out; --metric chooses which one is here.` : "";
  find("about").textContent = `${part}: ${counted(data.settings.length, "setting")} with ${counted(seeds, "seed")}${data.settings.length > 1 ? " each" : ""}. Everything is in this file; nothing is loaded.${each}${lost}`;
  const keys = data.keys.map((key, k) => [k, key]).filter(([k]) => data.values[k].length > 1);
  const statistics = [...shares, ...centres].map((name) => [name, words[name]]);
  find("choices").innerHTML =
    (keys.length ? select("x", "Across", keys, state.x) + select("y", "Down", [["", "none: put together"], ...keys], state.y ?? "") : "") +
    select("statistic", "Statistic", statistics, state.statistic) + select("metric", "Metric", data.metrics.map((name, k) => [k, name]), state.metric);
  const box = (kind, k, value, name) => `<label><input type="checkbox" data-${kind}="${k}" value="${value}" checked> ${escaped(name)}</label>`;
  const fields = keys.map(([k, key]) => `<fieldset><legend>${escaped(key)}</legend>${data.values[k].map((name, value) => box("key", k, value, name)).join("")}</fieldset>`);
  const ends = data.runs ? `<fieldset><legend>ended in</legend>${data.ends.map((end, k) => box("end", k, k, end)).join("")}</fieldset>` : "";
  find("keys").innerHTML = fields.join("") + ends;
  find("curve-choices").innerHTML = select("curve", "Metric", data.curves.map((name, k) => [k, name]), state.curve) + select("log", "Scale", [["", "linear"], ["log", "logarithmic"]], "");
  draw();
}

const toggled = (set, value, isIn) => (isIn ? set.add(value) : set.delete(value));

document.addEventListener("change", ({ target }) => {
  const { id, value, checked, dataset } = target;
  if (id === "x" || id === "y") {
    state[id] = value === "" ? null : Number(value);
    if (state.x === state.y) {
      // The other axis gives way.
      const other = id === "x" ? "y" : "x";
      state[other] = other === "y" ? null : (data.keys.map((_, k) => k).find((k) => k !== state.y && data.values[k].length > 1) ?? state.x);
      if (state.x === state.y) state.y = null;
      find("x").value = state.x;
      find("y").value = state.y ?? "";
    }
    state.cell = null;
  } else if (id === "statistic") state.statistic = value;
  else if (id === "metric") state.metric = Number(value);
  else if (id === "curve") state.curve = Number(value);
  else if (id === "log") state.isLog = value === "log";
  else if (dataset.key) toggled(state.hidden[Number(dataset.key)], Number(value), !checked);
  else if (dataset.end) toggled(state.hiddenEnds, Number(value), !checked);
  else if (dataset.line) {
    toggled(state.lines, Number(dataset.line), checked);
    if (state.lines.size > MOST_LINES) state.lines.delete([...state.lines][0]);
  } else return;
  if (dataset.key || dataset.end) state.cell = null;
  draw();
});

function chosen(target) {
  const cell = target.closest("[data-cell]");
  const seed = target.closest("[data-seed]");
  const column = target.closest("[data-column]");
  if (cell) [state.cell, state.seed] = [Number(cell.dataset.cell), null];
  else if (seed) state.seed = { setting: Number(seed.dataset.setting), seed: BigInt(seed.dataset.seed) };
  else if (column) state.sort = { column: Number(column.dataset.column), up: state.sort.column === Number(column.dataset.column) ? !state.sort.up : true };
  else return false;
  column ? drawTable() : drawMap();
  return true;
}

document.addEventListener("click", ({ target }) => chosen(target));
document.addEventListener("keydown", (event) => {
  // Buttons do this by themselves.
  if ((event.key === "Enter" || event.key === " ") && event.target.closest("[data-cell]") && chosen(event.target)) event.preventDefault();
});
document.getElementById("choices").addEventListener("submit", (event) => event.preventDefault());
let resizing;
window.addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(draw, 150);
});
start();
