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
  write: (value) => String(value),
  read: (text) => (text !== "" && Number(text) >= least && Number(text) <= most ? Number(text) : undefined),
});
/** A whole number between two bounds. */
export const whole = (least, most) => ({
  write: (value) => String(value),
  read: (text) => (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined),
});
/** One of some words. */
export const word = (words) => ({ write: (value) => value, read: (text) => (words.includes(text) ? text : undefined) });
/** Yes or no. */
export const flag = { write: (value) => (value ? "yes" : "no"), read: (text) => ({ yes: true, no: false })[text] };

/**
 * Adds a field. `codec.write` gives its text in the address and `codec.read` undoes it (undefined where the text is wrong);
 * without a codec the field is not part of the address.
 */
export function field(name, initial, codec = null) {
  codecs.set(name, { initial, codec });
  state[name] = initial;
}

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
    if (!codec || state[name] === initial) continue;
    // Commas, colons and the like stay readable; only what ends a pair or a fragment is escaped.
    parts.push(`${name}=${codec.write(state[name]).replace(/[%&#\s]/g, encodeURIComponent)}`);
  }
  return parts.length ? `#${parts.join("&")}` : "#";
}

// Browsers refuse to rewrite the address hundreds of times in a row, as dragging would.
function keep(step) {
  clearTimeout(writing);
  const write = () => {
    const text = address();
    if (text === written) return;
    written = text;
    history[step ? "pushState" : "replaceState"](null, "", text);
  };
  if (step) write();
  else writing = setTimeout(write, 150);
}

/** Takes the state from the address; what it does not say, or says wrongly, is as in the beginning. */
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
  for (const [name, { initial, codec }] of codecs) {
    if (!codec) continue;
    patch[name] = (said.has(name) ? codec.read(said.get(name)) : undefined) ?? initial;
  }
  written = location.hash || "#";
  update(patch);
}

addEventListener("hashchange", () => {
  if ((location.hash || "#") !== written) restore();
});

/** Keeps the present state under a name, so that `undo` returns to it. */
export function remember(label) {
  memories.push({ label, state: { ...state } });
  if (memories.length > 50) memories.shift();
}

/** What `undo` would take back, or null. */
export const undoable = () => memories.at(-1)?.label ?? null;

/** Returns to what was last remembered. */
export function undo() {
  const memory = memories.pop();
  if (memory) update({ ...memory.state, scene: state.scene });
}
