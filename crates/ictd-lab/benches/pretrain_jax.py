"""The paper's pretraining experiment in JAX, as a peer for `cargo xtask bench pretrain`.

The whole of training is one compiled program: tasks, trajectories, windows, gradients by autodiff and Adam
run in a scan over epochs, vectorised over seeds. Prints one line of JSON with the seconds of a second call,
compilation excluded, the learned coefficients, and how many seeds ended in the TD block and in its mirror image.
With `source` the query is the last of N sources, its reward visible, instead of a masked column after them.

    python pretrain_jax.py [EPOCHS [SEEDS [source]]]
"""

import functools
import json
import sys
import time

import jax
import jax.numpy as jnp

M, D, N, L = 64, 4, 10, 3
GAMMA, TAU, LR = 0.9, 1.2, 1e-3
BATCHES, BATCH = 5, 64
WINDOWS = BATCHES * BATCH
ROWS = D + 3
SOURCE = sys.argv[3:] == ["source"]
COLUMNS = N if SOURCE else N + 1
VALUE_MASK = jnp.zeros((ROWS, ROWS)).at[D + 1:].set(1.0)
SCORE_MASK = jnp.zeros((ROWS, ROWS)).at[:D, :D].set(1.0)


def task(key):
    kw, kx, kp, ke, kz = jax.random.split(key, 5)
    x = jax.random.uniform(kx, (M, D), minval=-1.0, maxval=1.0)
    v = x @ jax.random.uniform(kw, (D,), minval=-1.0, maxval=1.0)
    initial = jax.random.uniform(kp, (M,))
    ahead = jax.random.uniform(ke, (M,)).at[M - 2].set(1.0)
    restart = jax.random.uniform(kz, (M,))
    restart = restart / restart.sum()
    one, two = jnp.roll(v, -1), jnp.roll(v, -2)
    expected = (ahead * one + (1.0 - ahead) * two).at[M - 1].set(restart @ v)
    return x, v - GAMMA * expected, initial / initial.sum(), ahead, jnp.cumsum(restart)


def trajectory(key, initial, ahead, restart, length):
    first, rest = jax.random.split(key)
    start = jnp.searchsorted(jnp.cumsum(initial), jax.random.uniform(first))

    def step(s, u):
        forward = s + 1 + (ahead[s] <= u)
        following = jnp.where(s == M - 1, jnp.searchsorted(restart, u), forward)
        return jnp.minimum(following, M - 1), s

    _, states = jax.lax.scan(step, jnp.minimum(start, M - 1), jax.random.uniform(rest, (length,)))
    return states


def predict(params, features, rewards):
    """The block on one window: features (N+1, D), rewards (N,). The query is the last column."""
    value, score = params[0] * VALUE_MASK, params[1] * SCORE_MASK
    z = jnp.concatenate([features[:COLUMNS].T, jnp.append(rewards, 0.0)[None, :COLUMNS], jnp.zeros((2, COLUMNS))])
    weights = jax.nn.softmax(z[:, :N].T @ score @ z / TAU, axis=0)
    for _ in range(L):
        z = z + value @ z[:, :N] @ weights
        z = z.at[D + 1].set(GAMMA * jnp.append(z[D + 2, 1:], 0.0))
    return z[D + 2, -1]


def loss(params, features, rewards, query_rewards):
    predictions = jax.vmap(predict, in_axes=(None, 0, 0))(params, features, rewards)
    delta = query_rewards + GAMMA * jax.lax.stop_gradient(predictions[1:]) - predictions[:-1]
    return jnp.mean(delta**2)


def epoch(carry, key):
    params, first, second, step = carry
    task_key, walk_key = jax.random.split(key)
    x, r, initial, ahead, restart = task(task_key)
    states = trajectory(walk_key, initial, ahead, restart, WINDOWS + N + 1)
    index = jnp.arange(WINDOWS + 1)[:, None] + jnp.arange(N + 1)[None, :]
    features, rewards = x[states][index], r[states][index]

    def minibatch(carry, b):
        params, first, second, step = carry
        take = functools.partial(jax.lax.dynamic_slice_in_dim, start_index=b * BATCH, slice_size=BATCH + 1)
        window, reward = take(features), take(rewards)
        value, gradient = jax.value_and_grad(loss)(params, window, reward[:, :N], reward[:-1, COLUMNS - 1])
        step = step + 1
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        update = (first / (1 - 0.9**step)) / (jnp.sqrt(second / (1 - 0.999**step)) + 1e-8)
        return (params - LR * update, first, second, step), value

    return jax.lax.scan(minibatch, (params, first, second, step), jnp.arange(BATCHES))


@functools.partial(jax.jit, static_argnums=1)
def train(seeds, epochs):
    def one(seed):
        init, data = jax.random.split(jax.random.key(seed))
        params = 0.1 / jnp.sqrt(ROWS) * jax.random.normal(init, (2, ROWS, ROWS))
        zero = jnp.zeros_like(params)
        (params, *_), losses = jax.lax.scan(epoch, (params, zero, zero, 0.0), jax.random.split(data, epochs))
        return params, losses[-1, -1]

    return jax.vmap(one)(seeds)


def main():
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    seeds = jnp.arange(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    jax.block_until_ready(train(seeds, epochs))
    start = time.perf_counter()
    params, losses = jax.block_until_ready(train(seeds, epochs))
    seconds = time.perf_counter() - start
    signs = jnp.sign(params[:, 0, D + 2, D:])
    diagonal = jnp.sign(jnp.trace(params[:, 1, :D, :D], axis1=1, axis2=2))
    block = jnp.array([1.0, 1.0, -1.0])
    ends = {name: int(((signs == sign * block).all(axis=1) & (diagonal == sign)).sum()) for name, sign in (("td", 1), ("mirror", -1))}
    print(json.dumps({
        **ends,
        "jax": jax.__version__,
        "seconds": seconds,
        "value_row": params[:, 0, D + 2, D:].tolist(),
        "score_diag": [[float(p[1, i, i]) for i in range(D)] for p in params],
        "loss": losses.tolist(),
    }))


if __name__ == "__main__":
    main()
