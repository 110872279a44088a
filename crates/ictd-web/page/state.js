// The page's state: one plain object, the address that keeps it, and what listens to it.

const codecs = new Map();
const listeners = [];
const memories = [];
let changed = new Set();
let scheduled = false;
let written = "";
let writing = 0;

/** What the page shows. Read it freely; change it with `update` only. */
export const state = {};

/** A number between two bounds. */
export const number = (least, most) => ({
  expected: `a number from ${least} to ${most}`,
  write: (value) => String(value),
  read: (text) => (text !== "" && Number(text) >= least && Number(text) <= most ? Number(text) : undefined),
});
/** A whole number between two bounds. */
export const whole = (least, most) => ({
  expected: `a whole number from ${least} to ${most}`,
  write: (value) => String(value),
  read: (text) => (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined),
});
/** One of some words. */
export const word = (words) => ({ write: (value) => value, read: (text) => (words.includes(text) ? text : undefined) });
/** Yes or no. */
export const flag = { write: (value) => (value ? "yes" : "no"), read: (text) => ({ yes: true, no: false })[text] };

/** A field that no address says, and that the browser's way back and forth keeps all the same. */
export const unsaid = { kept: true };

/**
 * Adds a field. `codec.write` gives its text in the address and `codec.read` undoes it (undefined where the text is wrong);
 * without a codec the field is not part of the address.
 */
export function field(name, initial, codec = null) {
  codecs.set(name, { initial, codec });
  state[name] = initial;
}

/** What a field may be, in words. */
export const expected = (name) => codecs.get(name).codec.expected;

/** What a text says for a field; undefined where it says nothing that the field may be. */
export const reading = (name, text) => codecs.get(name).codec.read(text);

/** The value that a field has when nothing is said about it. */
export const initial = (name) => codecs.get(name).initial;

function flush() {
  scheduled = false;
  const keys = changed;
  changed = new Set();
  for (const listener of listeners) listener(state, keys);
}

/** Changes fields. Listeners are called once per frame, however many changes there are. */
export function update(patch, { step = false } = {}) {
  for (const [name, value] of Object.entries(patch)) {
    if (!codecs.has(name)) throw new Error(`no field ${name}`);
    if (Object.is(state[name], value)) continue;
    state[name] = value;
    changed.add(name);
  }
  if (changed.size === 0) return;
  if (!scheduled) {
    scheduled = true;
    requestAnimationFrame(flush);
  }
  keep(step);
}

/** Calls `listener(state, changedNames)` in the frame after a change. */
export function subscribe(listener) {
  listeners.push(listener);
}

/** Asks for a frame in which everything is drawn, as when the room for it has changed. */
export function redraw() {
  changed.add("room");
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(flush);
}

/** The state as text: `name=value` pairs of what differs from the beginning, in the order of the fields. */
export function address() {
  const parts = [];
  for (const [name, { initial, codec }] of codecs) {
    if (!codec?.write || state[name] === initial) continue;
    // Commas, colons and the like stay readable; only what ends a pair or a fragment is escaped.
    parts.push(`${name}=${codec.write(state[name]).replace(/[%&#\s]/g, encodeURIComponent)}`);
  }
  return parts.length ? `#${parts.join("&")}` : "#";
}

// What no address says, as often as it changed: entries of the history hold a place in this list.
const places = [{}];

function placeOf() {
  const now = {};
  for (const [name, { initial, codec }] of codecs) if (codec?.kept && state[name] !== initial) now[name] = state[name];
  const same = (other) => Object.keys({ ...now, ...other }).every((name) => now[name] === other[name]);
  const found = places.findIndex(same);
  return found < 0 ? places.push(now) - 1 : found;
}

// Browsers refuse to rewrite the address hundreds of times in a row, as dragging would.
function keep(step) {
  clearTimeout(writing);
  const write = () => {
    const text = address();
    const place = placeOf();
    if (text === written && place === history.state) return;
    written = text;
    history[step ? "pushState" : "replaceState"](place, "", text);
  };
  if (step) write();
  else writing = setTimeout(write, 150);
}

/** Takes the state from the address; what it does not say, or says wrongly, is as in the beginning: a link opens the same everywhere. */
export function restore() {
  const said = new Map();
  for (const part of location.hash.slice(1).split("&")) {
    const at = part.indexOf("=");
    if (at > 0) {
      try {
        said.set(part.slice(0, at), decodeURIComponent(part.slice(at + 1)));
      } catch {
        // A broken escape is like a field that is not said.
      }
    }
  }
  const patch = {};
  const kept = places[history.state ?? 0] ?? {};
  for (const [name, { initial, codec }] of codecs) {
    if (!codec?.read) {
      patch[name] = kept[name] ?? initial;
      continue;
    }
    patch[name] = (said.has(name) ? codec.read(said.get(name)) : undefined) ?? initial;
  }
  written = location.hash || "#";
  update(patch);
}

addEventListener("hashchange", () => {
  if ((location.hash || "#") !== written) restore();
});

/** Changes under one name that follow each other within this many milliseconds are undone together, as those of a drag. */
const TOGETHER = 1500;
let latest = { label: "", at: -TOGETHER };

/** Keeps the present state under a name, so that `undo` returns to it. */
export function remember(label) {
  const at = performance.now();
  const goesOn = latest.label === label && at - latest.at < TOGETHER;
  latest = { label, at };
  if (goesOn) return;
  memories.push({ label, state: { ...state } });
  if (memories.length > 50) memories.shift();
}

/** What is under the pointer, and which scene is shown, are no changes. */
const differs = ({ state: was }) => Object.keys(was).some((name) => name !== "hover" && name !== "scene" && was[name] !== state[name]);

/** What `undo` would take back, or null. */
export const undoable = () => memories.at(-1)?.label ?? null;

/** Returns to what was last remembered; what came to nothing is passed over. */
export function undo() {
  let memory = memories.pop();
  while (memory && memories.length > 0 && !differs(memory)) memory = memories.pop();
  latest = { label: "", at: -TOGETHER };
  if (memory) update({ ...memory.state, scene: state.scene });
}
