// The engine: a WebAssembly module that answers a request in JSON (and, where a file belongs to it, its bytes) with JSON.

/**
 * Opens an engine and returns its `call`. It uses no name from outside: its source is also what workers run.
 * A trap leaves the memory in an unknown state, so a fresh instance takes its place.
 */
function open(module) {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  let engine = new WebAssembly.Instance(module, {}).exports;
  const place = (bytes) => {
    const at = engine.reserve(bytes.length) >>> 0;
    if (at === 0) throw new Error("no room");
    new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
    return at;
  };
  const ask = (request, payload) => {
    const first = place(request);
    const second = place(payload);
    const at = engine.call(first, request.length, second, payload.length) >>> 0;
    const length = new DataView(engine.memory.buffer).getUint32(at, true);
    return decoder.decode(new Uint8Array(engine.memory.buffer, at + 4, length));
  };
  return (name, fields, payload) => {
    let text;
    try {
      text = ask(encoder.encode(JSON.stringify({ call: name, ...fields })), payload ?? new Uint8Array(0));
    } catch {
      engine = new WebAssembly.Instance(module, {}).exports;
      throw new Error(`the engine could not finish “${name}”: this is too large for the page`);
    }
    const answer = JSON.parse(text);
    if ("error" in answer) throw new Error(answer.error);
    return answer.value;
  };
}

/** What a worker does: the first message is the module, every other one a request. */
function serve(opened) {
  let call = null;
  self.onmessage = ({ data }) => {
    if (data.module) {
      call = opened(data.module);
      return;
    }
    const began = performance.now();
    try {
      const value = call(data.name, data.fields, data.payload);
      self.postMessage({ id: data.id, value, seconds: (performance.now() - began) / 1000 });
    } catch (error) {
      self.postMessage({ id: data.id, error: error.message });
    }
  };
}

let compiled = null;
let direct = null;

async function inflate() {
  const packed = Uint8Array.from(atob(document.getElementById("engine").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

/** Resolves when `call` can be used. */
export const ready = inflate().then((module) => {
  compiled = module;
  direct = open(module);
});

/** Asks the engine on this thread: for what answers within a frame. Throws an `Error` with the engine's line. */
export function call(name, fields = {}, payload) {
  return direct(name, fields, payload);
}

/** A worker with an engine of its own; sessions of training live in the worker that opened them. */
export class Lane {
  constructor() {
    this.waiting = new Map();
    this.next = 0;
    this.worker = null;
  }

  start() {
    const source = new Blob([`(${serve})(${open});`], { type: "text/javascript" });
    const address = URL.createObjectURL(source);
    this.worker = new Worker(address);
    URL.revokeObjectURL(address);
    this.worker.onmessage = ({ data }) => {
      const { resolve, reject } = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if ("error" in data) reject(new Error(data.error));
      else resolve({ value: data.value, seconds: data.seconds });
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.stop("a worker of the page failed");
    };
    this.worker.postMessage({ module: compiled });
  }

  /** Resolves to `{value, seconds}`: the answer and the time that the engine took for it. */
  async timed(name, fields = {}, payload) {
    await ready;
    if (!this.worker) this.start();
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, name, fields, payload });
    });
  }

  async call(name, fields, payload) {
    return (await this.timed(name, fields, payload)).value;
  }

  /** Ends what it is doing, at once; the next request starts a new worker. */
  stop(reason = "stopped") {
    this.worker?.terminate();
    this.worker = null;
    for (const { reject } of this.waiting.values()) reject(new Error(reason));
    this.waiting.clear();
  }
}

/** One lane per core, eight at most; workers start with their first request. */
export const lanes = Array.from({ length: Math.min(8, Math.max(1, navigator.hardwareConcurrency || 2)) }, () => new Lane());

/** Asks in the lane that has least to do: for what would take longer than a frame. Resolves to the answer. */
export const inWorker = (name, fields, payload) => idlest().call(name, fields, payload);

/** The lane that has least to do. */
export const idlest = () => lanes.reduce((a, b) => (b.waiting.size < a.waiting.size ? b : a));
