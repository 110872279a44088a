"""The estimators again, in NumPy and from their equations: what the tests of `ictd` compare it with. Nothing here calls `ictd`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Table:
    """Sums over the distinct states of episodes: each is (states (T + 1 or T, d), rewards (T,), whether it terminated)."""

    def __init__(self, episodes: list[tuple[Array, Array, bool]], gamma: float, scale: bool = True) -> None:
        self.gamma, self.episodes = gamma, episodes
        left = np.concatenate([s[: len(r)] for s, r, _ in episodes])
        self.mean, self.deviation = (left.mean(0), left.std(0)) if scale else (np.zeros(left.shape[1]), np.ones(left.shape[1]))
        rows = np.concatenate([s for s, _, _ in episodes])
        self.raw, number = np.unique(rows, axis=0, return_inverse=True)
        self.x = self.scaled(self.raw)
        m = len(self.raw)
        self.n, self.r, self.N = np.zeros(m), np.zeros(m), np.zeros((m, m))
        self.paths: list[tuple[NDArray[np.intp], Array, bool]] = []
        at, ended, went_on = 0, 0, 0
        for states, rewards, terminated in episodes:
            path = number.ravel()[at : at + len(states)]
            at += len(states)
            self.paths.append((path, rewards, terminated))
            for t, reward in enumerate(rewards):
                self.n[path[t]] += 1
                self.r[path[t]] += reward
                if terminated and t + 1 == len(rewards):
                    ended += 1
                else:
                    went_on += 1
                    self.N[path[t], path[t + 1]] += 1
        self.c = self.r.sum() / (ended + (1 - gamma) * went_on)

    def scaled(self, x: Array) -> Array:
        return (x - self.mean) / self.deviation

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest return; where an episode was cut short it may go on as it was."""
        found = []
        for path, rewards, terminated in self.paths:
            sums: dict[tuple[int, int], list[float]] = {}
            for t in range(len(rewards)):
                g = sum(self.gamma**k * r for k, r in enumerate(rewards[t:]))
                if terminated:
                    found.append(g)
                else:
                    cell = sums.setdefault((int(path[t]), int(path[-1])), [0.0, 0.0, 0.0])
                    for k, x in enumerate((g, 1.0, self.gamma ** (len(rewards) - t))):
                        cell[k] += x
            found += [g / (count - d) for g, count, d in sums.values()]
        return min(found), max(found)

    def held(self, v: Array) -> Array:
        return np.clip(v, *self.range)

    def rbf(self, x: Array, y: Array, temperature: float) -> Array:
        return np.exp(-0.5 * ((x[:, None] - y[None]) ** 2).sum(-1) / temperature)

    def errors(self, v: Array) -> Array:
        return self.r + self.gamma * self.N @ v - self.n * v

    def softmax_td(self, queries: Array, temperature: float, layers: int) -> Array:
        left = self.n > 0
        points = np.concatenate([self.x, self.scaled(queries)])
        k = self.rbf(points, self.x[left], temperature)
        k /= (k * self.n[left]).sum(1, keepdims=True)
        v = np.full(len(points), self.c)
        for _ in range(layers):
            v = v + k @ self.errors(v[: len(self.x)])[left]
        return self.held(v[len(self.x) :])

    def attention(self, queries: Array, temperature: float) -> Array:
        k = self.rbf(self.scaled(queries), self.x, temperature) * self.n
        return k / k.sum(1, keepdims=True)

    def kbrl(self, queries: Array, temperature: float) -> Array:
        points = np.concatenate([self.x, self.scaled(queries)])
        k = self.rbf(points, self.x, temperature)
        k /= (k * self.n).sum(1, keepdims=True)
        m = len(self.x)
        v = np.linalg.solve(np.eye(m) - self.gamma * k[:m] @ self.N, k[:m] @ self.r)
        return self.held((k @ (self.r + self.gamma * self.N @ v))[m:])

    def kernel_lstd(self, queries: Array, temperature: float, ridge: float) -> Array:
        left = self.n > 0
        k = self.rbf(self.x, self.x[left], temperature)
        # Brackets are affine in β: those of c, and D K β.
        d = (self.gamma * self.N - np.diag(self.n))[left]
        right = self.errors(np.full(len(self.x), self.c))[left]
        beta = np.linalg.solve(ridge * self.n.sum() * np.eye(left.sum()) - d @ k, right)
        return self.held(self.c + self.rbf(self.scaled(queries), self.x[left], temperature) @ beta)

    def linear_lstd(self, queries: Array, ridge: float) -> Array:
        d = self.gamma * self.N - np.diag(self.n)
        right = self.x.T @ self.errors(np.full(len(self.x), self.c))
        w = np.linalg.solve(ridge * self.n.sum() * np.eye(self.x.shape[1]) - self.x.T @ d @ self.x, right)
        return self.held(self.c + self.scaled(queries) @ w)

    def linear_td(self, queries: Array, layers: int) -> Array:
        w = np.zeros(self.x.shape[1])
        for _ in range(layers):
            w = w + 0.1 / self.n.sum() * self.x.T @ self.errors(self.c + self.x @ w)
        return self.held(self.c + self.scaled(queries) @ w)

    def at(self, queries: Array, v: Array) -> Array:
        """Values of states of the table; others have the constant."""
        known = {tuple(row): k for k, row in enumerate(self.raw)}
        return self.held(np.array([v[known[tuple(q)]] if tuple(q) in known else self.c for q in queries]))

    def lstd(self, queries: Array, decay: float = 0.0) -> Array:
        """The fixed point of λ-returns: rows of a linear system, visit by visit."""
        m, v = len(self.x), np.full(len(self.x), self.c)
        a, b = np.zeros((m, m)), np.zeros(m)
        for path, rewards, terminated in self.paths:
            row, paid = np.zeros(m), 0.0
            for t in reversed(range(len(rewards))):
                is_last = t + 1 == len(rewards)
                if is_last:
                    row, paid = np.zeros(m), rewards[t]
                    if not terminated:
                        row[path[t + 1]] = self.gamma
                else:
                    row, paid = self.gamma * decay * row, rewards[t] + self.gamma * decay * paid
                    row[path[t + 1]] += self.gamma * (1 - decay)
                a[path[t]] -= row
                a[path[t], path[t]] += 1
                b[path[t]] += paid
        left = self.n > 0
        # States that were never left have the constant.
        rest = b[left] - a[np.ix_(left, ~left)] @ v[~left]
        v[left] = np.linalg.solve(a[np.ix_(left, left)], rest)
        return self.at(queries, v)

    def tabular_td(self, queries: Array, layers: int) -> Array:
        v, left = np.full(len(self.x), self.c), self.n > 0
        for _ in range(layers):
            v[left] = v[left] + self.errors(v)[left] / self.n[left]
        return self.at(queries, v)

    def monte_carlo(self, queries: Array) -> Array:
        sums, v = np.zeros(len(self.x)), np.full(len(self.x), self.c)
        for path, rewards, _ in self.paths:
            g = 0.0
            for t in reversed(range(len(rewards))):
                g = rewards[t] + self.gamma * g
                sums[path[t]] += g
        left = self.n > 0
        v[left] = sums[left] / self.n[left]
        return self.at(queries, v)

    def score(self, other: Table, values: Array) -> float:
        """Minus the mean square distance of values of the other table's states from the returns that followed."""
        terms = []
        for path, rewards, terminated in other.paths:
            for t in range(len(rewards)):
                g = sum(self.gamma**k * r for k, r in enumerate(rewards[t:]))
                if not terminated:
                    g += self.gamma ** (len(rewards) - t) * values[path[-1]]
                terms.append((values[path[t]] - g) ** 2)
        return -float(np.mean(terms))
