// Unpacks the page's modules (JSON, deflated, in Base64: a third of their size) and says in an import map where each is. It does so at
// once, not through a DecompressionStream, so that the modules run before the page counts as loaded.
(() => {
  const element = document.getElementById("modules");
  const input = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  const out = new Uint8Array(Number(element.dataset.length));
  let at = 0;
  let place = 0;
  let bits = 0;
  let held = 0;

  const take = (n) => {
    for (; held < n; held += 8) bits |= input[at++] << held;
    const value = bits & ((1 << n) - 1);
    bits >>>= n;
    held -= n;
    return value;
  };

  /** Codes of these lengths, one per symbol; of equal length they are consecutive, in the order of the symbols (RFC 1951, 3.2.2). */
  const tree = (lengths) => {
    const symbols = Array.from({ length: 16 }, () => []);
    lengths.forEach((length, symbol) => length && symbols[length].push(symbol));
    return symbols;
  };

  const read = (symbols) => {
    for (let length = 1, code = 0, first = 0; length < 16; length++) {
      code = (code << 1) | take(1);
      first <<= 1;
      if (code - first < symbols[length].length) return symbols[length][code - first];
      first += symbols[length].length;
    }
    throw new Error("the page is damaged");
  };

  /** Lengths or distances by symbol: where the range of each begins, and how many bits more say which of the range it is. */
  const ranges = (count, first, shared) => {
    const extra = Array.from({ length: count }, (_, k) => Math.max(0, (k >> shared) - 1));
    let next = first;
    return extra.map((bits) => [(next += 1 << bits) - (1 << bits), bits]);
  };
  const [LENGTHS, DISTANCES] = [ranges(28, 3, 2), ranges(30, 1, 1)];
  const ranged = ([begin, extra]) => begin + take(extra);

  const described = () => {
    const [literals, distances, given] = [take(5) + 257, take(5) + 1, take(4) + 4];
    const order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    const own = Array(19).fill(0);
    for (let k = 0; k < given; k++) own[order[k]] = take(3);
    const codes = tree(own);
    const lengths = [];
    while (lengths.length < literals + distances) {
      const symbol = read(codes);
      if (symbol < 16) lengths.push(symbol);
      else {
        const value = symbol === 16 ? lengths.at(-1) : 0;
        const times = symbol === 16 ? 3 + take(2) : symbol === 17 ? 3 + take(3) : 11 + take(7);
        for (let k = 0; k < times; k++) lengths.push(value);
      }
    }
    return [tree(lengths.slice(0, literals)), tree(lengths.slice(literals))];
  };

  const fixed = () => [tree(Array.from({ length: 288 }, (_, k) => (k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8))), tree(Array(30).fill(5))];

  for (let last = 0; !last; ) {
    last = take(1);
    const kind = take(2);
    if (kind === 0) {
      // Stored as it is, from the next whole byte on.
      take(held % 8);
      const length = take(16);
      take(16);
      for (let k = 0; k < length; k++) out[place++] = take(8);
      continue;
    }
    const [literals, distances] = kind === 1 ? fixed() : described();
    for (let symbol = read(literals); symbol !== 256; symbol = read(literals)) {
      if (symbol < 256) {
        out[place++] = symbol;
        continue;
      }
      const length = symbol === 285 ? 258 : ranged(LENGTHS[symbol - 257]);
      const distance = ranged(DISTANCES[read(distances)]);
      for (let k = 0; k < length; k++, place++) out[place] = out[place - distance];
    }
  }

  const modules = Object.entries(JSON.parse(new TextDecoder().decode(out)));
  const address = (text) => `data:text/javascript;charset=utf-8,${encodeURIComponent(text)}`;
  const map = document.createElement("script");
  map.type = "importmap";
  map.textContent = JSON.stringify({ imports: Object.fromEntries(modules.map(([name, text]) => [`ictd/${name}`, address(text)])) });
  document.head.append(map);
})();
