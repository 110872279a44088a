// Unpacks what `xtask/src/pack.rs` packed (the two files say the same): the page's modules, which an import map then names, and the
// engine. It does so at once, so that the modules run before the page counts as loaded.
(() => {
  // The models, as places in one list: what each is given, and as many nodes as its bits have.
  const [FLAG, LAST, LENGTH, SLOT, LOW, LITERAL, MODELS] = [0, 8, 16, 528, 784, 2832, 68368];

  const unpack = (id) => {
    const element = document.getElementById(id);
    const letters = element.textContent;
    const out = new Uint8Array(Number(element.dataset.length));
    const [quick, slow] = [new Uint16Array(MODELS).fill(1 << 15), new Uint16Array(MODELS).fill(1 << 15)];
    let [low, high, number, next] = [0, 0xffffffff, 0, 0];

    // Five letters for four bytes, the highest first: those from # to x but <.
    const code = new Uint8Array(letters.length * 0.8);
    const bytes = new DataView(code.buffer);
    for (let k = 0; 5 * k < letters.length; k++) {
      let four = 0;
      for (let j = 5 * k; j < 5 * k + 5; j++) {
        const letter = letters.charCodeAt(j);
        four = 85 * four + letter - (letter > 60 ? 36 : 35);
      }
      bytes.setUint32(4 * k, four);
    }

    const shift = () => (number = ((number << 8) | (next < code.length ? code[next++] : 0)) >>> 0);
    for (let k = 0; k < 4; k++) shift();

    /** The next bit, which is 1 with this probability of 4096. */
    const split = (probability) => {
      const middle = low + ((high - low) >>> 12) * probability;
      const bit = number <= middle ? 1 : 0;
      if (bit) high = middle;
      else low = middle + 1;
      while ((low ^ high) >>> 24 === 0) {
        low = (low << 8) >>> 0;
        high = ((high << 8) | 0xff) >>> 0;
        shift();
      }
      return bit;
    };

    const read = (model) => {
      const a = quick[model];
      const b = slow[model];
      // Of 4096, never 0 or 1.
      const bit = split(Math.min(4095, (a + b) >> 5 || 1));
      const target = bit * 65535;
      quick[model] = a + ((target - a) >> 4);
      slow[model] = b + ((target - b) >> 7);
      return bit;
    };

    /** As many bits, the highest first, each given those before it. */
    const tree = (models, bits) => {
      let node = 1;
      for (let k = 0; k < bits; k++) node = 2 * node + read(models + node);
      return node - (1 << bits);
    };

    const farAway = (length) => {
      const slot = tree(SLOT + Math.min(3, length - 2) * 64, 6);
      const bits = slot >> 1;
      if (bits < 2) return 1 + bits;
      let value = 2 + (slot & 1);
      for (let k = bits - 2; k > 4; k--) value = 2 * value + split(2048);
      const modelled = Math.min(4, bits - 2);
      return 1 + (value << modelled) + tree(LOW + slot * 32, modelled);
    };

    for (let at = 0, history = 0, last = 1; at < out.length; ) {
      const repeats = read(FLAG + history);
      if (repeats) {
        const same = read(LAST + history);
        const length = 2 + tree(LENGTH + 256 * same, 8);
        if (!same) last = farAway(length);
        for (const end = Math.min(out.length, at + length); at < end; at++) out[at] = out[at - last];
      } else {
        out[at] = tree(LITERAL + 256 * (at > 0 ? out[at - 1] : 0), 8);
        at++;
      }
      history = (2 * history + repeats) % 8;
    }
    return out;
  };

  const modules = Object.entries(JSON.parse(new TextDecoder().decode(unpack("modules"))));
  const address = (text) => `data:text/javascript;charset=utf-8,${encodeURIComponent(text)}`;
  const map = document.createElement("script");
  map.type = "importmap";
  map.nonce = "ictd";
  map.textContent = JSON.stringify({ imports: Object.fromEntries(modules.map(([name, text]) => [`ictd/${name}`, address(text)])) });
  document.head.append(map);
  document.getElementById("engine").bytes = () => unpack("engine");
})();
