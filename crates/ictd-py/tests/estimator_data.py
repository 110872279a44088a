"""Logs that the tests of estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np

Episode = tuple[np.ndarray, np.ndarray, bool]


def walks(number: int = 30, seed: int = 0, repeats: bool = True) -> list[Episode]:
    """Episodes of two features, on a grid where states repeat; every third is cut short."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(number):
        steps = int(rng.integers(3, 9))
        states = rng.integers(-2, 3, size=(steps + 1, 2)) * np.array([1.0, 2.5]) if repeats else rng.normal(size=(steps + 1, 2))
        rewards = states[:steps, 0] + 0.3 * states[:steps, 1] + 0.2 * rng.normal(size=steps)
        terminated = k % 3 != 0
        found.append((states[:steps] if terminated else states, rewards, terminated))
    return found


def columns(episodes: list[Episode]) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Rows for an estimator: an episode that was cut short has a last row without a reward."""
    X = np.concatenate([s for s, _, _ in episodes])
    y = np.concatenate([np.append(r, [np.nan] * (len(s) - len(r))) for s, r, _ in episodes])
    episode = np.concatenate([np.full(len(s), k) for k, (s, _, _) in enumerate(episodes)])
    terminated = np.concatenate([np.append(np.zeros(len(s) - 1), e) for s, _, e in episodes])
    return X, y, {"episode": episode, "terminated": terminated}
