// Loads the engine and says which it is.

async function open() {
  const module = await WebAssembly.compile(document.getElementById("engine").bytes());
  const engine = new WebAssembly.Instance(module, {}).exports;
  return (name, fields = {}) => {
    const request = new TextEncoder().encode(JSON.stringify({ call: name, ...fields }));
    const at = engine.reserve(request.length) >>> 0;
    new Uint8Array(engine.memory.buffer, at, request.length).set(request);
    const answer = engine.call(at, request.length, 0, 0) >>> 0;
    const length = new DataView(engine.memory.buffer).getUint32(answer, true);
    const text = new TextDecoder().decode(new Uint8Array(engine.memory.buffer, answer + 4, length));
    const { value, error } = JSON.parse(text);
    if (error !== undefined) throw new Error(error);
    return value;
  };
}

const ready = open();
window.ictd = {
  ready,
  forward: async (context, options = {}) => (await ready)("forward", { context, options }),
  certify: async (context, options = {}) => (await ready)("certify", { context, options }),
};
ready.then((call) => {
  document.getElementById("about").textContent = `ictd ${call("about").version}`;
});
