"""Reference values of the forward pass from an independent implementation in plain Python.

Writes forward.json beside this file: for every case the prompt, the parameters and the token matrices
Z_0..Z_L, computed with nothing but lists, math.exp and the definitions. Needs no packages:

    python3 crates/ictd/tests/golden/forward.py
"""

import json
import math
import pathlib
import random


def matmul(a, b):
    return [[sum(x * y for x, y in zip(row, col)) for col in zip(*b)] for row in a]


def attention(kernel, a, z, tau, rho):
    """K~ of shape (n+1)x(n+1); the last token is never a source."""
    n = len(z[0]) - 1
    tokens = list(zip(*z))
    d = len(z) - 3

    def bilinear(p, q):
        return sum(p[i] * a[i][j] * q[j] for i in range(len(p)) for j in range(len(q)))

    def weight(i, j):
        if kernel == "tabular":
            return float(tokens[i][:d] == tokens[j][:d])
        if kernel == "rbf":
            diff = [p - q for p, q in zip(tokens[i], tokens[j])]
            return math.exp(-bilinear(diff, diff) / (2 * tau))
        g = bilinear(tokens[i], tokens[j]) / tau
        return {
            "softmax": lambda: math.exp(g),
            "relu": lambda: max(g, 0.0),
            "elu1": lambda: g + 1 if g > 0 else math.exp(g),
            "linear": lambda: g,
        }[kernel]()

    k = [[0.0] * (n + 1) for _ in range(n + 1)]
    for j in range(n + 1):
        column = [weight(i, j) for i in range(n)]
        total = n if kernel == "linear" else sum(column)
        for i in range(n):
            k[i][j] = (1 - rho) * (column[i] / total if total else 0.0) + (rho if i == j else 0.0)
    return k


def shift(row):
    return row[1:] + [0.0]


def layer(block, kernel, v, a, z, gamma, tau, rho, alpha):
    d = len(z) - 3
    update = matmul(matmul(v, z), attention(kernel, a, z, tau, rho))
    z = [list(row) for row in z]
    if block == "dual":
        aggregate = update[d + 2]
        z[d + 2] = [x + alpha * u for x, u in zip(z[d + 2], aggregate)]
        z[d + 1] = [x + alpha * gamma * u for x, u in zip(z[d + 1], shift(aggregate))]
    else:
        z = [[x + alpha * u for x, u in zip(row, new)] for row, new in zip(z, update)]
        z[d + 1] = [gamma * x for x in shift(z[d + 2])]
    return z


def theta_star(d):
    v = [[0.0] * (d + 3) for _ in range(d + 3)]
    v[d + 2][d:] = [1.0, 1.0, -1.0]
    a = [[float(i == j and i < d) for j in range(d + 3)] for i in range(d + 3)]
    return v, a


def main():
    rng = random.Random(20240101)
    cases = []
    for kernel in ["softmax", "relu", "elu1", "rbf", "linear", "tabular"]:
        for block in ["dual", "tsm"]:
            for full in [False, True]:
                d, n, layers, gamma, tau, rho, alpha = 3, 6, 4, 0.9, 1.3, 0.2, 0.8
                table = [[rng.uniform(-1, 1) for _ in range(d)] for _ in range(4)]
                features = [rng.choice(table) for _ in range(n + 1)]
                rewards = [rng.uniform(-1, 1) for _ in range(n)]
                if full:
                    v, a = ([[rng.uniform(-0.3, 0.3) for _ in range(d + 3)] for _ in range(d + 3)] for _ in "va")
                else:
                    v, a = theta_star(d)
                z = [list(row) for row in zip(*features)] + [rewards + [0.0], [0.0] * (n + 1), [0.0] * (n + 1)]
                history = [z]
                for _ in range(layers):
                    history.append(layer(block, kernel, v, a, history[-1], gamma, tau, rho, alpha))
                cases.append(dict(kernel=kernel, block=block, gamma=gamma, temperature=tau, diagonal_mix=rho,
                                  step_size=alpha, features=features, rewards=rewards, V=v, A=a, Z=history))
    path = pathlib.Path(__file__).with_name("forward.json")
    path.write_text(json.dumps(cases) + "\n")
    print(f"{len(cases)} cases in {path.name}")


if __name__ == "__main__":
    main()
