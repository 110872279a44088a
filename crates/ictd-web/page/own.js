// A process of the reader's own: how it is changed, and how the address spells it.

const uniform = (m) => Array.from({ length: m }, () => 1 / m);
const scaled = (row) => {
  const sum = row.reduce((a, b) => a + b, 0);
  return row.map((p) => p / sum);
};

/** What of a process is kept: all but its discount and its values. */
export const copyOf = ({ P, rewards, features, initial }) => structuredClone({ P, rewards, features, initial });

/** The process with another reward on leaving state s. */
export function withReward(process, s, reward) {
  const own = copyOf(process);
  own.rewards[s] = reward;
  return own;
}

/** The process with state s at other features. */
export function withFeatures(process, s, x) {
  const own = copyOf(process);
  own.features[s] = x;
  return own;
}

/**
 * The process with a new state on the likeliest way out of s, which half of the steps still go directly: with both ways no chain returns
 * in a fixed beat.
 */
export function withState(process, s) {
  const own = copyOf(process);
  const m = own.P.length;
  const way = own.P[s].map((p, u) => (u === s ? 0 : p));
  const to = Math.max(...way) > 0 ? way.indexOf(Math.max(...way)) : s;
  for (const row of own.P) row.push(0);
  own.P.push(own.P[s].map(() => 0));
  own.P[s][m] = own.P[s][to] /= 2;
  own.P[m][to] = 1;
  // A little beside the middle, so that it does not hide between two states that lie together.
  own.features.push(own.features[s].map((x, k) => Math.round(((x + own.features[to][k]) / 2 + (k === 0 ? 0.1 : 0)) * 100) / 100));
  own.rewards.push(0);
  own.initial = uniform(m + 1);
  return own;
}

/** The process without state s: who went there goes on to where it led. */
export function withoutState(process, s) {
  const own = copyOf(process);
  const stay = own.P[s][s];
  const keep = (row) => row.filter((_, u) => u !== s);
  const exits = stay < 1 ? own.P[s].map((p) => p / (1 - stay)) : uniform(own.P.length);
  own.P = own.P.map((row) => scaled(keep(row.map((p, u) => p + row[s] * exits[u])))).filter((_, u) => u !== s);
  own.features = keep(own.features);
  own.rewards = keep(own.rewards);
  own.initial = uniform(own.P.length);
  return own;
}

/** `reward,x1,x2~to:p,to:p` for every state, separated by semicolons; a start that is not uniform is added as `@p`. */
export const ownCodec = {
  write: ({ P, rewards, features, initial }) => {
    const even = initial.every((p) => p === initial[0]);
    return P.map((row, s) => {
      const ways = row.flatMap((p, u) => (p > 0 ? [`${u}:${p}`] : []));
      return `${[rewards[s], ...features[s]].join(",")}${even ? "" : `@${initial[s]}`}~${ways.join(",")}`;
    }).join(";");
  },
  read: (text) => {
    const states = text.split(";");
    const own = { P: [], rewards: [], features: [], initial: [] };
    for (const state of states) {
      const [head, tail = ""] = state.split("~");
      const [numbers, start] = head.split("@");
      const [reward, ...x] = numbers.split(",").map(Number);
      const row = states.map(() => 0);
      for (const way of tail.split(",")) {
        const [to, p] = way.split(":").map(Number);
        if (!(to < row.length)) return undefined;
        row[to] = p;
      }
      own.P.push(row);
      own.rewards.push(reward);
      own.features.push(x);
      own.initial.push(start === undefined ? 1 / states.length : Number(start));
    }
    const fine = [own.P.flat(), own.rewards, own.features.flat(), own.initial].flat().every(Number.isFinite);
    const even = own.features.every((x) => x.length === own.features[0].length && x.length > 0);
    return fine && even && states.length <= 16 ? own : undefined;
  },
};
