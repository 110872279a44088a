"""Eigenvalues of layers on difficult contexts, with 300 digits.

Writes spectrum.json beside this file: small contexts (near-duplicates, chains that run in circles, discounts up to
0.999, flat and very sharp scores, terminal ends, states that are never left) and what decides about depth on them,
from the features on in 300 digits: the smallest real part of the eigenvalues of F W, as a share of the largest
eigenvalue (0 when below 1e-60 of it), and 1 - the largest |1 - alpha lambda|. Needs mpmath:

    pip install mpmath && python crates/ictd/tests/golden/spectrum.py
"""

import json
import pathlib
import random

from mpmath import mp, mpf

mp.dps = 300
CASES = 2400
KERNELS = ["softmax", "softmax", "rbf", "elu1", "relu"]


def draw(rng):
    m, d = rng.randint(3, 8), rng.randint(1, 3)
    scale = rng.choice([0.5, 1, 2, 4])
    style = rng.randrange(3)
    states = []
    while len(states) < m:
        # Multiples of 1/16 are short in a file, and doubles.
        x = [scale * rng.randint(-16, 16) / 16 for _ in range(d)]
        if style == 0 and states and rng.random() < 0.5:
            near = 2.0 ** -rng.randint(3, 24)
            x = [a + near * rng.randint(-2, 2) for a in rng.choice(states)]
        if x not in states:
            states.append(x)
    inner = rng.randint(max(1, m - 2), m)
    circles = rng.random() < 0.5
    episodes = []
    for _ in range(rng.randint(1, 3)):
        path = [rng.randrange(inner)]
        for _ in range(rng.randint(1, 18)):
            step = (path[-1] + 1) % inner if circles and rng.random() < 0.85 else rng.randrange(inner)
            path.append(step)
        path.append(rng.choice(path) if rng.random() < 0.7 else rng.randrange(m))
        # A point ends an episode in a terminal state.
        episodes.append("".join(map(str, path)) + rng.choice([".", "", ""]))
    return {
        "x": [[int(a) if a == int(a) else a for a in x] for x in states],
        "paths": " ".join(episodes),
        "kernel": rng.choice(KERNELS),
        "tau": float("%.2g" % 10 ** rng.uniform(-2.3, 1)),
        "gamma": rng.choice([0, 0.3, 0.6, 0.9, 0.99, 0.999]),
        "alpha": float("%.2g" % rng.uniform(0.1, 1.9)),
    }


def transitions(paths):
    for episode in paths.split(" "):
        states = [int(c) for c in episode.rstrip(".")]
        for k in range(len(states) - 1):
            ends = episode.endswith(".") and k == len(states) - 2
            yield states[k], None if ends else states[k + 1]


def weights(case, sources, visits):
    tau = mpf(case["tau"])
    x = [[mpf(a) for a in row] for row in case["x"]]

    def raw(u, s):
        inner = sum(a * b for a, b in zip(x[u], x[s]))
        if case["kernel"] == "softmax":
            return mp.exp(inner / tau)
        if case["kernel"] == "rbf":
            return mp.exp(-sum((a - b) ** 2 for a, b in zip(x[u], x[s])) / (2 * tau))
        if case["kernel"] == "elu1":
            return inner / tau + 1 if inner > 0 else mp.exp(inner / tau)
        return max(inner, mpf(0))

    rows = []
    for u in range(len(x)):
        row = [raw(u, s) for s in sources]
        total = sum(w * visits[s] for w, s in zip(row, sources))
        rows.append([w / total if total else mpf(0) for w in row])
    return rows


def judge(case):
    steps = list(transitions(case["paths"]))
    sources = sorted({s for s, _ in steps})
    visits = {s: sum(1 for t, _ in steps if t == s) for s in sources}
    w = weights(case, sources, visits)
    gamma, m = mpf(case["gamma"]), len(sources)
    fw = mp.matrix(m, m)
    for s, following in steps:
        for k in range(m):
            value = w[s][k] - (gamma * w[following][k] if following is not None else 0)
            fw[sources.index(s), k] += value
    values, _ = mp.eig(fw)
    largest = max(abs(z) for z in values)
    if largest == 0:
        return 0.0, 0.0
    smallest = min(z.real for z in values) / largest
    # Weights can make F W singular (ReLU), or so nearly that 300 digits cannot tell: an eigenvalue of 0 that is sensitive
    # comes out as a root of 10^-300.
    if abs(smallest) < mpf(10) ** -60:
        smallest = mpf(0)
    alpha = mpf(case["alpha"])
    return float(smallest), float(1 - max(abs(1 - alpha * z) for z in values))


def main():
    rng = random.Random(9)
    cases = []
    while len(cases) < CASES:
        case = draw(rng)
        case["real"], case["gap"] = (float("%.4g" % v) for v in judge(case))
        cases.append(case)
    text = "[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n"
    pathlib.Path(__file__).with_suffix(".json").write_text(text)
    print(len(text), sum(c["real"] < 0 for c in cases), sum(c["real"] == 0 for c in cases))


if __name__ == "__main__":
    main()
