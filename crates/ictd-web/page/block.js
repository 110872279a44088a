// A block of parameters other than θ_*: what a forward pass takes from it, and how the address spells it.

/** The options of a block that no control of the page sets. */
export function ownOptions({ options = {}, params }) {
  const { diagonal_mix, block } = options;
  return { ...(diagonal_mix ? { diagonal_mix } : {}), ...(block ? { block } : {}), params };
}

/** Numbers as text, every bit of them. */
function packed(numbers) {
  const bytes = new Uint8Array(Float64Array.from(numbers).buffer);
  return btoa(String.fromCharCode(...bytes)).replace(/=+$/, "");
}

function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return Array.from(new Float64Array(bytes.buffer));
}

/** The pairs (V, A) of parameters: one for all layers, or one for each. */
const pairsOf = (params) => params.layers ?? [params];

/** `label~block~rho~size~numbers`: numbers of V and A of every layer, row by row. */
export const blockCodec = {
  write: ({ label, params, options }) => {
    const pairs = pairsOf(params);
    const words = [label.replaceAll("~", "-"), options.block ?? "", options.diagonal_mix ?? "", pairs[0].V.length];
    return [...words, packed(pairs.flatMap(({ V, A }) => [V, A]).flat(2))].join("~");
  },
  read: (text) => {
    const [label, block, rho, size, numbers] = text.split("~");
    const q = Number(size);
    try {
      const all = unpacked(numbers);
      const matrix = (at) => Array.from({ length: q }, (_, i) => all.slice(at + i * q, at + (i + 1) * q));
      const count = all.length / (2 * q * q);
      if (!(q > 3) || !Number.isInteger(count) || count < 1) return undefined;
      const pairs = Array.from({ length: count }, (_, k) => ({ V: matrix(2 * k * q * q), A: matrix((2 * k + 1) * q * q) }));
      const options = { ...(block ? { block } : {}), ...(rho ? { diagonal_mix: Number(rho) } : {}) };
      return { label, params: count === 1 ? pairs[0] : { layers: pairs }, options };
    } catch {
      return undefined;
    }
  },
};
