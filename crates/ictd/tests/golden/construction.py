"""Reference tokens and values of the constructions in linear attention, in plain NumPy.

Writes construction.json beside this file: for every construction two trajectories, one with preconditioners by layer, every token matrix
and the values of the query. Values are computed twice, by attention and by an update of weights transition by transition, and the
script ends with an error where they differ. Needs NumPy:

    pip install numpy && python crates/ictd/tests/golden/construction.py
"""

import json
import pathlib

import numpy as np

D, N, L, GAMMA, LAMBDA, ALPHA = 2, 6, 4, 0.9, 0.5, 0.3
NAMES = ["td", "td-lambda", "residual-gradient", "average-reward", "monte-carlo", "sarsa", "chain-of-thought"]


def weights(name, x, r, cs):
    """One transition after another, as a textbook writes it."""
    n, gamma = len(r), 1.0 if name == "average-reward" else GAMMA
    w = np.zeros(x.shape[1])
    history = [w]
    for c in cs:
        total, trace, seen = np.zeros_like(w), np.zeros_like(w), 0.0
        for i in range(n):
            delta = r[i] + gamma * (w @ x[i + 1]) - w @ x[i]
            along = x[i]
            if name == "td-lambda":
                trace = LAMBDA * trace + x[i]
                along = trace
            elif name == "residual-gradient":
                along = x[i] - gamma * x[i + 1]
            elif name == "average-reward":
                seen += r[i]
                delta -= seen / (i + 1)
            elif name == "monte-carlo":
                delta = sum(gamma**k * r[i + k] for k in range(n - i)) - w @ x[i]
            total += delta * along
        w = w + ALPHA / n * (c @ total)
        history.append(w)
    return [float(w @ x[-1]) for w in history]


def linear(name, x, r, cs):
    n, d = len(r), x.shape[1]
    gamma = 1.0 if name == "average-reward" else GAMMA
    upper = np.vstack([x.T, np.hstack([gamma * x[1:].T, np.zeros((d, 1))]), np.append(r, 0.0)])
    if name == "average-reward":
        upper = np.vstack([upper, np.zeros(n + 1)])
    if name == "monte-carlo":
        upper[d : 2 * d] = 0
        upper[-1, :n] = [sum(gamma**k * r[i + k] for k in range(n - i)) for i in range(n)]
    z, rows = upper, len(upper)
    m = np.diag([1.0] * n + [0.0])
    if name == "td-lambda":
        for i in range(n):
            for j in range(i + 1):
                m[i, j] = LAMBDA ** (i - j)
    p1, p2 = np.zeros((rows, rows)), np.zeros((rows, rows))
    p1[-1, -2], p2[-1, -1] = 1, 1
    mix = np.triu(np.ones((n + 1, n + 1))) @ np.diag(1 / np.arange(1, n + 2)) - np.eye(n + 1)
    out = [z]
    for c in cs:
        q = np.zeros((rows, rows))
        below = [c.T, -c.T] if name == "residual-gradient" else [0 * c, 0 * c]
        q[: 2 * d, : 2 * d] = np.block([[-c.T, c.T], below])
        update = p2 @ z @ m @ z.T @ q @ z
        if name == "average-reward":
            update = update + p1 @ z @ mix @ m @ z.T @ q @ z
        z = z + ALPHA / n * update
        out.append(z)
    sign = 1.0 if name == "average-reward" else -1.0
    return out, [float(sign * z[-1, -1]) for z in out]


def sarsa(name, x, r, cs):
    n, d = len(r), x.shape[1]
    top = np.vstack([x[:-1].T, GAMMA * x[1:].T, r])
    h = np.zeros((3 * d + 2, n + 1))
    h[: 2 * d + 1, :n] = top
    h[2 * d + 1, n] = 1
    p = np.zeros((3 * d + 2, 3 * d + 2))
    p[:d, 2 * d + 2 :], p[d : 2 * d, 2 * d + 2 :], p[2 * d, 2 * d + 1] = -np.eye(d), np.eye(d), 1
    out = [h]
    for c in cs:
        v = np.zeros_like(p)
        v[2 * d + 2 :, :d] = ALPHA * c
        if name == "sarsa":
            h = h + (v @ h) @ (h.T @ p @ h) / n
        else:
            last = h[:, -1:]
            h = np.hstack([h, last + (v @ h) @ (h.T @ p @ last) / n])
        out.append(h)
    return out, [float(h[2 * d + 2 :, -1] @ x[-1]) for h in out]


def main():
    rng = np.random.default_rng(20240515)
    cases = []
    for name in NAMES:
        for preconditioned in [False, True]:
            x, r = rng.uniform(-1, 1, (N + 1, D)), rng.uniform(-1, 1, N)
            cs = [rng.uniform(-1, 1, (D, D)) if preconditioned else np.eye(D) for _ in range(L)]
            tokens, values = (sarsa if name in ["sarsa", "chain-of-thought"] else linear)(name, x, r, cs)
            assert np.abs(np.array(values) - weights(name, x, r, cs)).max() < 1e-14, name
            cases.append({
                "construction": name,
                "lambda": LAMBDA if name == "td-lambda" else 0.0,
                "gamma": 1.0 if name == "average-reward" else GAMMA,
                "step_size": ALPHA,
                "features": x.tolist(),
                "rewards": r.tolist(),
                "C": [c.tolist() for c in cs] if preconditioned else [],
                "tokens": [z.tolist() for z in tokens],
                "values": values,
            })
    path = pathlib.Path(__file__).with_name("construction.json")
    path.write_text("[" + ",\n".join(json.dumps(case) for case in cases) + "]\n")


main()
