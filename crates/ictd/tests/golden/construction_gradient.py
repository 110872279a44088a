"""Reference derivatives of the constructions in linear attention, by automatic differentiation in float64.

Writes construction_gradient.json beside this file: for every construction one trajectory, preconditioners and step sizes by layer, the value of
the query, and its derivatives by both as JAX differentiates the layers written as attention. Needs JAX:

    pip install jax && python crates/ictd/tests/golden/construction_gradient.py
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

D, N, L, GAMMA, LAMBDA = 2, 6, 4, 0.9, 0.5
NAMES = ["td", "td-lambda", "residual-gradient", "average-reward", "monte-carlo", "sarsa", "chain-of-thought"]


def linear(name, x, r, cs, sizes):
    """Z + (α/n)·Σ P Z (R) M Z' Q Z, layer by layer; the value is in the last corner."""
    gamma = 1.0 if name == "average-reward" else GAMMA
    z = np.vstack([x.T, np.hstack([gamma * x[1:].T, np.zeros((D, 1))]), np.append(r, 0.0)])
    if name == "average-reward":
        z = np.vstack([z, np.zeros(N + 1)])
    if name == "monte-carlo":
        z[D : 2 * D] = 0
        z[-1, :N] = [sum(gamma**k * r[i + k] for k in range(N - i)) for i in range(N)]
    rows = len(z)
    apart = np.subtract.outer(np.arange(N + 1), np.arange(N + 1))
    mask = np.where(apart >= 0, LAMBDA ** np.maximum(apart, 0), 0.0) if name == "td-lambda" else np.eye(N + 1)
    mask = mask * np.append(np.ones(N), 0.0) * np.append(np.ones(N), 0.0)[:, None]
    centre = np.triu(np.ones((N + 1, N + 1))) / np.arange(1, N + 2) - np.eye(N + 1)
    heads = [(rows - 1, np.eye(N + 1))] + ([(rows - 2, centre)] if name == "average-reward" else [])
    for c, size in zip(cs, sizes):
        upper = jnp.hstack([-c.T, c.T])
        lower = -upper if name == "residual-gradient" else 0 * upper
        q = jnp.zeros((rows, rows)).at[: 2 * D, : 2 * D].set(jnp.vstack([upper, lower]))
        seen = mask @ z.T @ q @ z
        z = jnp.asarray(z).at[-1].add(size / N * sum(z[row] @ mix @ seen for row, mix in heads))
    return z[-1, -1] * (1 if name == "average-reward" else -1)


def sarsa(name, x, r, cs, sizes):
    """H + (1/n)·(V H)(H' P H), overwriting weights or appending them; the value is weights times features."""
    h = jnp.zeros((3 * D + 2, N + 1)).at[: 2 * D + 1, :N].set(jnp.vstack([x[:-1].T, GAMMA * x[1:].T, r])).at[2 * D + 1, N].set(1)
    p = np.zeros((3 * D + 2, 3 * D + 2))
    p[:D, 2 * D + 2 :], p[D : 2 * D, 2 * D + 2 :], p[2 * D, 2 * D + 1] = -np.eye(D), np.eye(D), 1
    for c, size in zip(cs, sizes):
        v = jnp.zeros_like(p).at[2 * D + 2 :, :D].set(size * c)
        h = h + (v @ h) @ (h.T @ p @ h) / N if name == "sarsa" else jnp.hstack([h, h[:, -1:] + (v @ h) @ (h.T @ p @ h[:, -1:]) / N])
    return h[2 * D + 2 :, -1] @ x[-1]


def main():
    rng = np.random.default_rng(20261119)
    cases = []
    for name in NAMES:
        x, r = rng.uniform(-1, 1, (N + 1, D)), rng.uniform(-1, 1, N)
        cs, sizes = rng.uniform(-1, 1, (L, D, D)), rng.uniform(0.1, 0.5, L)
        of = sarsa if name in ["sarsa", "chain-of-thought"] else linear
        value, (by_c, by_size) = jax.value_and_grad(lambda c, size: of(name, x, r, c, size), (0, 1))(cs, sizes)
        cases.append({
            "construction": name,
            "lambda": LAMBDA if name == "td-lambda" else 0.0,
            "gamma": 1.0 if name == "average-reward" else GAMMA,
            "features": x.tolist(),
            "rewards": r.tolist(),
            "C": cs.tolist(),
            "step_sizes": sizes.tolist(),
            "value": float(value),
            "by_C": by_c.tolist(),
            "by_step_size": by_size.tolist(),
        })
    path = pathlib.Path(__file__).with_name("construction_gradient.json")
    path.write_text("[" + ",\n".join(json.dumps(case) for case in cases) + "]\n")


main()
