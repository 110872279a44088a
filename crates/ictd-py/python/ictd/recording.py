"""Episodes as they were recorded: one by one, as one table, and in files."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from ictd.errors import InputError

__all__ = ["Array", "Arrays", "Episode", "Episodes"]

Array = npt.NDArray[Any]


class Arrays(NamedTuple):
    """Episodes as one table, a row per observation: T + 1 rows for T steps."""

    X: Array
    """States that were left: (rows, features), or (rows,) where they are whole numbers or texts without further meaning."""
    rewards: npt.NDArray[np.float64]
    """Rewards of leaving them; NaN in the last row of an episode, whose state nobody left."""
    episode: npt.NDArray[np.int64]
    """The number of the episode."""
    terminated: npt.NDArray[np.bool_]
    """Whether the step led into a terminal state."""
    truncated: npt.NDArray[np.bool_]
    """Whether the episode was cut short after the step."""


@dataclass(frozen=True, eq=False, repr=False)
class Episode:
    """One episode of T steps, with the attributes of Minari's ``EpisodeData``."""

    id: int
    """Its number, from 0."""
    observations: Array
    """T + 1 observations: what was seen before every step, and after the last."""
    actions: Array
    """T actions, as the environment got them."""
    rewards: npt.NDArray[np.float64]
    """T rewards."""
    terminations: npt.NDArray[np.bool_]
    """T flags: whether the step led into a terminal state."""
    truncations: npt.NDArray[np.bool_]
    """T flags: whether the episode was cut short after the step."""

    @property
    def terminated(self) -> bool:
        """Whether the episode ended in a terminal state."""
        return bool(self.terminations[-1])

    @property
    def truncated(self) -> bool:
        """Whether the episode was cut short."""
        return bool(self.truncations[-1])

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        end = "terminated" if self.terminated else "truncated"
        return f"<episode {self.id}: {len(self)} steps, {end}, rewards sum to {self.rewards.sum():.6g}>"


class Episodes(Sequence[Episode]):
    """Episodes of one environment, as :func:`collect` makes them: a sequence of :class:`Episode`.

    >>> import ictd
    >>> class Coin:  # any object with these two methods
    ...     def reset(self, *, seed=None):
    ...         return 0, {}
    ...     def step(self, action):
    ...         return 1, 0.5, True, False, {}
    >>> episodes = ictd.collect(Coin(), lambda state: 0, episodes=3, seed=0)
    >>> episodes
    <3 episodes, 3 steps, 0 cut short, rewards sum to 0.5 on average>
    >>> episodes[0]
    <episode 0: 1 steps, terminated, rewards sum to 0.5>
    """

    def __init__(self, episodes: Iterable[Episode], state_columns: Sequence[str], action_columns: Sequence[str]) -> None:
        self._episodes = tuple(episodes)
        self.state_columns = tuple(state_columns)
        """Names of the columns of X in files: ``state`` where an observation is one thing, ``obs_0``, ``obs_1``, … where it is a vector, ``obs_KEY…`` for parts of dictionaries."""
        self.action_columns = tuple(action_columns)
        """The same of actions: ``action``, or ``action_0``, …"""

    def __len__(self) -> int:
        return len(self._episodes)

    @overload
    def __getitem__(self, index: int) -> Episode: ...
    @overload
    def __getitem__(self, index: slice) -> Episodes: ...
    def __getitem__(self, index: int | slice) -> Episode | Episodes:
        if isinstance(index, slice):
            return Episodes(self._episodes[index], self.state_columns, self.action_columns)
        return self._episodes[index]

    def __repr__(self) -> str:
        steps, cut = sum(map(len, self)), sum(episode.truncated and not episode.terminated for episode in self)
        mean = sum(episode.rewards.sum() for episode in self) / max(len(self), 1)
        return f"<{len(self)} episodes, {steps} steps, {cut} cut short, rewards sum to {mean:.6g} on average>"

    def arrays(self) -> Arrays:
        """All episodes as one table: ``X, rewards, episode, terminated, truncated``, with T + 1 rows for T steps.

        The last row of an episode has the state in which it ended or was cut short, and NaN for a reward: it is there so that the last
        step has a next state. This is the convention of the library's tables (``docs/formats.md``).

        >>> from ictd.gym import collect
        >>> class Coin:  # any object with these two methods
        ...     def reset(self, *, seed=None):
        ...         self.left = 2
        ...         return self.left, {}
        ...     def step(self, action):
        ...         self.left -= 1
        ...         return self.left, 1.0, self.left == 0, False, {}
        >>> X, rewards, episode, terminated, truncated = collect(Coin(), lambda state: 0, episodes=2, seed=0).arrays()
        >>> X
        array([2, 1, 0, 2, 1, 0])
        >>> rewards
        array([ 1.,  1., nan,  1.,  1., nan])
        >>> terminated
        array([False,  True, False, False,  True, False])
        """
        self._some()
        observations = np.concatenate([episode.observations for episode in self])
        return Arrays(
            X=_table(observations) if self._vectors() else observations,
            rewards=np.concatenate([_with_last(episode.rewards, np.nan) for episode in self]),
            episode=np.concatenate([np.full(len(episode) + 1, episode.id, dtype=np.int64) for episode in self]),
            terminated=np.concatenate([_with_last(episode.terminations, False) for episode in self]),
            truncated=np.concatenate([_with_last(episode.truncations, False) for episode in self]),
        )

    def dicts(self) -> list[dict[str, Any]]:
        """Episodes as dictionaries with the keys of Minari: ``minari.data_collector.EpisodeBuffer(**d)`` takes one as it is,
        and ``minari.create_dataset_from_buffers`` a list of those."""
        names = ("id", "observations", "actions", "rewards", "terminations", "truncations")
        return [{name: getattr(episode, name) for name in names} for episode in self]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table of :meth:`arrays`, and the actions, as ``.csv``, ``.npz`` or ``.jsonl``: what ``ictd evaluate`` and
        ``ictd convert`` read. The same episodes give the same bytes."""
        name: str = os.fspath(path)
        kind = os.path.splitext(name)[1].lower()
        if kind not in (".csv", ".npz", ".jsonl"):
            raise InputError(f"episodes are to be written to '{name}', expected a name that ends in .csv, .npz or .jsonl")
        columns = self._columns()
        if kind == ".npz":
            with open(path, "wb") as file:
                np.savez(file, **{name: column for name, (column, _) in columns.items()})  # type: ignore[arg-type, unused-ignore]
            return
        cells = [_cells(column, whole) for column, whole in columns.values()]
        with open(path, "w", encoding="utf-8", newline="") as file:
            if kind == ".csv":
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(columns)
                writer.writerows(zip(*([int(x) if isinstance(x, bool) else x for x in column] for column in cells), strict=True))
            else:
                file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in zip(*cells, strict=True))

    def _some(self) -> None:
        if not self:
            raise InputError("there are 0 episodes, expected at least 1")

    def _vectors(self) -> bool:
        """Whether observations are features, not labels."""
        first = self[0].observations
        return first.ndim > 1 or first.dtype.kind == "f"

    def _columns(self) -> dict[str, tuple[Array, bool]]:
        """The columns of files by name, each with whether what is not NaN in it is whole."""
        X, rewards, episode, terminated, truncated = self.arrays()
        columns: dict[str, tuple[Array, bool]] = {"episode": (episode, True), "t": (np.concatenate([np.arange(len(e) + 1) for e in self]), True)}
        columns |= {name: (column, False) for name, column in zip(self.state_columns, _table(X).T, strict=True)}
        # Nobody acted in the last row.
        actions = [_table(episode.actions) for episode in self]
        whole = all(a.dtype.kind in "biu" for a in actions)
        acted = np.concatenate([np.vstack([a.astype(np.float64), np.full((1, a.shape[1]), np.nan)]) for a in actions])
        columns |= {name: (column, whole) for name, column in zip(self.action_columns, acted.T, strict=True)}
        return columns | {"reward": (rewards, False), "terminated": (terminated, False), "truncated": (truncated, False)}


def _table(array: Array) -> Array:
    """A row per entry."""
    return array.reshape(len(array), -1)


def _with_last(array: Array, last: Any) -> Array:
    return np.append(array, np.asarray(last, dtype=array.dtype))


def _cells(column: Array, whole: bool) -> list[Any]:
    """Numbers as Python has them, ``None`` for NaN."""
    return [None if x != x else int(x) if whole else x for x in column.tolist()]
