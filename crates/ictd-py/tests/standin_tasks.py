"""Random tasks in NumPy, for tests of environments where the library's own are not to be had. The draws are others."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

USUAL = {"boyan": (64, 4), "loop": (10, 5), "dense": (10, 4)}


class Family:
    def __init__(self, kind, *, states=None, features=None, gamma=0.9, representable=True, threshold=0.5):
        usual = USUAL[kind]
        self.kind, self.gamma, self.representable, self.threshold = kind, gamma, representable, threshold
        self.states, self.features = states or usual[0], features or usual[1]

    def draw(self, seed, index=0):
        rng = np.random.default_rng([seed, index])
        m = self.states
        features = rng.uniform(-1, 1, (m, self.features))
        if self.kind == "boyan":
            P = np.zeros((m, m))
            ahead = rng.uniform(size=m - 2)
            P[np.arange(m - 2), np.arange(1, m - 1)] = ahead
            P[np.arange(m - 2), np.arange(2, m)] = 1 - ahead
            P[m - 2, m - 1] = 1
            P[m - 1] = rng.uniform(size=m)
        else:
            P = rng.uniform(0.01, 0.99, (m, m))
            if self.kind == "loop":
                P *= rng.uniform(size=(m, m)) > self.threshold
                np.fill_diagonal(P, 0)
                P[np.arange(m), (np.arange(m) + 1) % m] = 0.5
        P /= P.sum(axis=1, keepdims=True)
        initial = rng.uniform(size=m)
        rewards = (np.eye(m) - self.gamma * P) @ features @ rng.uniform(-1, 1, self.features)
        if not self.representable:
            rewards = rng.uniform(-1, 1, m)
        values = np.linalg.solve(np.eye(m) - self.gamma * P, rewards)
        return SimpleNamespace(P=P, rewards=rewards, gamma=self.gamma, initial=initial / initial.sum(), features=features, values=values)
