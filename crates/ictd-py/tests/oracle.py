"""What the library computes, written down again in NumPy from its formulas, and the command line beside it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

KERNELS = ("softmax", "relu", "elu1", "rbf", "linear", "tabular")


def trajectory(seed, n=10, d=4, states=None):
    """Features (n + 1, d) and rewards (n,); with `states` features repeat."""
    rng = np.random.default_rng(seed)
    if states is None:
        return rng.uniform(-1, 1, (n + 1, d)), rng.uniform(-1, 1, n)
    table = rng.uniform(-1, 1, (states, d))
    return table[rng.integers(0, states, n + 1)], rng.uniform(-1, 1, n)


def weights(kernel, z, A, sources, terminal, tau=1.0, rho=0.0):
    """K̃: entry (i, j) is the weight of source i for column j."""
    columns = z.shape[1]
    found = np.zeros((columns, columns))
    index = np.flatnonzero(sources)
    for j in range(columns):
        if terminal[j]:
            continue
        g = np.array([z[:, i] @ A @ z[:, j] for i in index])
        if kernel == "softmax":
            w = np.exp(g / tau - np.max(g / tau))
        elif kernel == "relu":
            w = np.maximum(g, 0)
        elif kernel == "elu1":
            w = np.where(g > 0, g / tau + 1, np.exp(np.minimum(g, 0) / tau))
        elif kernel == "rbf":
            e = np.array([-(z[:, i] - z[:, j]) @ A @ (z[:, i] - z[:, j]) / (2 * tau) for i in index])
            w = np.exp(e - e.max())
        elif kernel == "linear":
            w = g / tau
        else:
            w = np.array([float(np.array_equal(z[:-3, i], z[:-3, j])) for i in index])
        total = len(index) if kernel == "linear" else w.sum()
        w = w / total if total else w * 0
        found[index, j] = (1 - rho) * w
        if sources[j]:
            found[j, j] += rho
    return found


def theta_star(d):
    V, A = np.zeros((d + 3, d + 3)), np.zeros((d + 3, d + 3))
    V[-1, -3:] = 1, 1, -1
    A[:d, :d] = np.eye(d)
    return V, A


def prompt(features, rewards, sources):
    d = features.shape[1]
    z = np.zeros((d + 3, len(features)))
    z[:d] = features.T
    z[d, sources] = rewards
    return z


def layers(z, V, A, sources, terminal, *, gamma, depth, kernel="softmax", tau=1.0, alpha=1.0, rho=0.0, block="tsm"):
    """Token matrices (L + 1, d + 3, columns) and attention (L, columns, columns)."""
    tokens, attention = [z], []
    alpha = np.broadcast_to(alpha, depth)
    for layer in range(depth):
        v, a = (V, A) if V.ndim == 2 else (V[layer], A[layer])
        k = weights(kernel, z, a, sources, terminal, tau, rho)
        update = alpha[layer] * v @ z @ k
        next_z = z.copy()
        if block == "dual":
            next_z[-1] += update[-1]
            next_z[-2] += gamma * np.where(sources, np.roll(update[-1], -1), 0)
        else:
            next_z += update
            next_z[-2] = gamma * np.where(sources, np.roll(next_z[-1], -1), 0)
        z = next_z
        tokens.append(z)
        attention.append(k)
    return np.array(tokens), np.array(attention)


def one(features, rewards, **words):
    """Tokens and attention of one trajectory at θ_*, or at V and A."""
    sources = np.arange(len(features)) < len(rewards)
    V, A = words.pop("params", None) or theta_star(features.shape[1])
    return layers(prompt(features, rewards, sources), V, A, sources, np.zeros(len(features), bool), **words)


def cli(*words, text=None):
    """The JSON of a command of the binary named by ICTD_BINARY, or of the release build; skips without one."""
    build = pathlib.Path(__file__).parents[3] / "target" / "release" / "ictd"
    binary = os.environ.get("ICTD_BINARY") or (str(build) if build.exists() else None)
    if binary is None:
        pytest.skip("no binary: ICTD_BINARY does not name one")
    done = subprocess.run([binary, "-q", *map(str, words), "--json"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1, 3), done.stderr
    return json.loads(done.stdout)


def child(code):
    """Runs code in an interpreter of its own, and gives what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
