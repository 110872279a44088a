"""Reference gradients of the pretraining prediction by automatic differentiation in float64.

Writes gradient.json beside this file: for every mask, block, tying, rho and query column one context, random
parameters within the mask, the prediction, and its derivative by every parameter as JAX computes it; then the same for
every other reading of prompt and mixing; then the same for the other kernels that can be trained, the one of distances with every mask. Needs JAX:

    pip install jax && python crates/ictd/tests/golden/gradient.py
"""

import itertools
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

D, N, L, GAMMA, TAU = 2, 4, 3, 0.9, 1.2
ROWS = D + 3


def masks(name):
    value, score = np.zeros((ROWS, ROWS)), np.zeros((ROWS, ROWS))
    if name == "none":
        return np.ones((ROWS, ROWS)), np.ones((ROWS, ROWS))
    if name == "looped":
        value[D + 2, D:] = 1
    else:
        value[D + 1:] = 1
    score[:D, :D] = 1
    if name == "relaxed":
        score[:D], score[:, :D] = 1, 1
    return value, score


def weigh(scores, kernel):
    """The weights of every column of scores / TAU, sources along the first axis."""
    if kernel in ["softmax", "rbf"]:
        return jax.nn.softmax(scores, axis=0)
    if kernel == "linear":
        return scores / N
    raw = jax.nn.relu(scores) if kernel == "relu" else jax.nn.elu(scores) + 1
    total = raw.sum(axis=0)
    # A column without a positive weight stays 0.
    return jnp.where(total > 0, raw / jnp.where(total > 0, total, 1), 0)


def similarities(z, score, kernel):
    """What is divided by TAU: z_i' A z_j, or -1/2 (z_i - z_j)' A (z_i - z_j), sources along the first axis."""
    if kernel != "rbf":
        return z[:, :N].T @ score @ z
    apart = z[:, :N, None] - z[:, None, :]
    return -0.5 * jnp.einsum("aij,ab,bij->ij", apart, score, apart)


def predict(params, features, rewards, block, rho, last_state=True, query_mix="mixed", kernel="softmax"):
    """params: one (V, A) per layer; features: one row per column, the query last; the first N columns are sources, and
    without last_state the last of them has no successor in the prompt."""
    columns = features.shape[0]
    z = jnp.concatenate([features.T, jnp.zeros((1, columns)).at[0, :N].set(rewards), jnp.zeros((2, columns))])
    mixing = jnp.eye(N, columns)
    linked = N if last_state else N - 1
    # Target memory: gamma times the value of the next column, for sources that have one.
    def shift(row):
        return jnp.zeros(columns).at[:linked].set(row[1:linked + 1])
    for value, score in params:
        weights = weigh(similarities(z, score, kernel) / TAU, kernel)
        keep = (1 - rho) * weights + rho * mixing
        if query_mix == "scaled":
            keep = keep.at[:, -1].set((1 - rho) * weights[:, -1])
        elif query_mix == "unmixed":
            keep = keep.at[:, -1].set(weights[:, -1])
        update = value @ z[:, :N] @ keep
        if block == "dual":
            z = z.at[D + 2].add(update[D + 2]).at[D + 1].add(GAMMA * shift(update[D + 2]))
        else:
            z = z + update
            z = z.at[D + 1].set(GAMMA * shift(z[D + 2]))
    return z[D + 2, -1]


def main():
    rng = np.random.default_rng(7)
    cases = []
    settings = itertools.product(["full", "relaxed", "none", "looped"], ["dual", "tsm"], [True, False], [0.0, 0.7], [False, True])
    settings = [(*s, True, False, "mixed", "softmax") for s in settings]
    readings = itertools.product(["full", "relaxed"], ["dual", "tsm"], [True], [0.7], [False, True], [False, True], [False, True],
                                 ["mixed", "scaled", "unmixed"], ["softmax"])
    kernels = itertools.product(["full", "relaxed", "none"], ["dual", "tsm"], [True, False], [0.7], [False, True], [False, True],
                                [False], ["mixed"], ["linear", "relu", "elu1"])
    distances = itertools.product(["full", "relaxed", "none", "looped"], ["dual", "tsm"], [True, False], [0.0, 0.7], [False, True],
                                  [True, False], [False], ["mixed"], ["rbf"])
    for mask, block, tied, rho, separate, last_state, hidden, query_mix, kernel in [*settings, *readings, *kernels, *distances]:
        value_mask, score_mask = masks(mask)
        pairs = 1 if tied else L
        params = [(rng.uniform(-0.8, 0.8, (ROWS, ROWS)) * value_mask, rng.uniform(-0.8, 0.8, (ROWS, ROWS)) * score_mask)
                  for _ in range(pairs)]
        features = rng.uniform(-1, 1, (N + last_state + separate, D))
        rewards = rng.uniform(-1, 1, N)
        shown = [*rewards[:-1], 0.0] if hidden else rewards

        def f(params):
            return predict(params * L if tied else params, jnp.asarray(features), jnp.asarray(shown), block, rho,
                           last_state, query_mix, kernel)

        prediction, gradient = jax.value_and_grad(f)([tuple(map(jnp.asarray, pair)) for pair in params])
        flat = lambda pairs: [float(x) for pair in pairs for matrix in pair for x in np.asarray(matrix).ravel()]
        cases.append(dict(mask=mask, block=block, tied=tied, rho=rho, separate=separate, last_state=last_state,
                          hidden=hidden, query_mix=query_mix, kernel=kernel, features=features.tolist(),
                          rewards=rewards.tolist(), params=flat(params), prediction=float(prediction), gradient=flat(gradient)))
    path = pathlib.Path(__file__).with_name("gradient.json")
    path.write_text(json.dumps(cases) + "\n")
    print(f"{len(cases)} cases in {path.name}, JAX {jax.__version__}")


if __name__ == "__main__":
    main()
