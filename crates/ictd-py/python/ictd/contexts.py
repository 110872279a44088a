"""Contexts: what the Transformer is shown."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ictd import _core
from ictd._checks import plain_path, unmasked
from ictd.blocks import Floats
from ictd.errors import InputError, InputTypeError

__all__ = ["Context", "as_context"]

Flags = bool | Sequence[bool] | npt.NDArray[np.bool_]


class Context:
    """Transitions with features and rewards, and the states to evaluate.

    ``features`` (n + 1, d) are those of the states of a trajectory in their order, ``rewards`` (n,) are paid on leaving the first n. Of
    several episodes ``features`` (n + E, d) and ``rewards`` (n,) stand one after another, each episode with one row more than
    transitions, and ``episode`` (n + E,) has a label for every row. ``terminated``, for all or for each episode, says that the last state
    is terminal, so that its value is 0. ``queries`` (q, d) are states that are only asked about.

    Columns of results are the states of every episode in order, then the queries.

    >>> context = Context([[0.0], [1.0], [2.0]], [0.5, -0.5], queries=[[3.0]])
    >>> context
    <Context: 2 transitions, 1 episode, 1 query, 1 feature>
    >>> context.roles
    ['source', 'source', 'last', 'query']
    """

    __slots__ = ("_inner",)
    _inner: _core.Context

    def __init__(
        self,
        features: npt.ArrayLike,
        rewards: npt.ArrayLike,
        *,
        episode: npt.ArrayLike | None = None,
        terminated: Flags | None = None,
        queries: npt.ArrayLike | None = None,
    ) -> None:
        object.__setattr__(self, "_inner", _core.Context(features, rewards, rows_of(episode), flags_of(terminated), queries))

    @classmethod
    def _of(cls, core: _core.Context) -> Context:
        made = cls.__new__(cls)
        object.__setattr__(made, "_inner", core)
        return made

    @classmethod
    def from_episodes(
        cls,
        episodes: Iterable[tuple[npt.ArrayLike, npt.ArrayLike] | tuple[npt.ArrayLike, npt.ArrayLike, bool]],
        *,
        queries: npt.ArrayLike | None = None,
    ) -> Context:
        """From (features, rewards) or (features, rewards, terminated) of every episode.

        >>> Context.from_episodes([([[0.0], [1.0]], [1.0], True), ([[2.0], [3.0]], [0.0])])
        <Context: 2 transitions, 2 episodes, 0 queries, 1 feature>
        """
        features: list[npt.NDArray[Any]] = []
        rewards: list[npt.NDArray[Any]] = []
        flags: list[bool] = []
        for k, episode in enumerate(episodes):
            if not isinstance(episode, Sequence) or isinstance(episode, (str, bytes)) or not 2 <= len(episode) <= 3:
                raise InputTypeError(f"episode {k} is of type {type(episode).__name__}, expected (features, rewards) or with terminated beside them")
            rows, paid = _array(k, "features", episode[0]), _array(k, "rewards", episode[1])
            if rows.ndim != 2 or paid.ndim != 1:
                raise InputError(f"episode {k}: features have shape {rows.shape} and rewards {paid.shape}, expected (T + 1, d) and (T,)")
            if len(rows) != len(paid) + 1:
                found = f"{len(paid)} rewards and {len(rows)} feature rows"
                raise InputError(f"rewards: episode {k} has {found}, expected one row more than rewards")
            if features and rows.shape[1] != features[0].shape[1]:
                raise InputError(f"features: row 0 of episode {k} has {rows.shape[1]} entries, expected {features[0].shape[1]}")
            features.append(rows)
            rewards.append(paid)
            flags.append(_flag_of(k, episode[2]) if len(episode) > 2 else False)
        if not features:
            raise InputError("rewards: the context is empty, expected at least one transition")
        lengths = [len(rows) for rows in features]
        return cls._of(_core.Context(np.concatenate(features), np.concatenate(rewards), lengths, flags, queries))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Context:
        """From a file of JSON or NPZ, as ``ictd forward`` reads it."""
        return cls._of(_core.Context.read(plain_path(path)))

    @property
    def features(self) -> Floats:
        """(columns, d)."""
        return self._inner.features()

    @property
    def rewards(self) -> Floats:
        """(columns,): what is paid on leaving each; 0 where a column is no source."""
        return self._inner.rewards()

    @property
    def roles(self) -> list[str]:
        """``source``, ``last`` (of a truncated episode), ``terminal`` or ``query``, for every column."""
        return self._inner.roles()

    @property
    def episodes(self) -> list[tuple[slice, bool]]:
        """The columns of every episode, and whether it ends in a terminal state."""
        return [(slice(start, end), terminated) for start, end, terminated in self._inner.episodes()]

    @property
    def sources(self) -> npt.NDArray[np.intp]:
        """The columns of the transitions: transition k goes from column ``sources[k]`` to the one after it."""
        return np.flatnonzero(np.array(self.roles) == "source")

    @property
    def num_transitions(self) -> int:
        """Number of transitions n."""
        return self._inner.num_transitions

    @property
    def num_columns(self) -> int:
        """Number of columns, queries included."""
        return self._inner.num_columns

    @property
    def num_queries(self) -> int:
        """Number of queries, whose columns are the last."""
        return self._inner.num_queries

    def to_json(self) -> str:
        """As a file that ``ictd forward`` and :meth:`read` read."""
        features, rewards = self.features, self.rewards
        episodes = [
            {"features": features[columns].tolist(), "rewards": rewards[columns][:-1].tolist(), "terminated": terminated}
            for columns, terminated in self.episodes
        ]
        found: dict[str, Any] = {"episodes": episodes}
        if self.num_queries:
            found["queries"] = features[self.num_columns - self.num_queries :].tolist()
        return json.dumps(found)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes :meth:`to_json` to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json() + "\n")

    def __eq__(self, other: object) -> bool:
        return self._inner == other._inner if isinstance(other, Context) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set: contexts do not change")

    def __reduce__(self) -> tuple[Any, ...]:
        features, rewards = self.features, self.rewards
        episodes = [(features[columns], rewards[columns][:-1], terminated) for columns, terminated in self.episodes]
        return (_rebuilt, (episodes, features[self.num_columns - self.num_queries :] if self.num_queries else None))

    def __repr__(self) -> str:
        def counted(count: int, one: str, many: str) -> str:
            return f"{count} {one if count == 1 else many}"

        words = [
            counted(self.num_transitions, "transition", "transitions"),
            counted(len(self.episodes), "episode", "episodes"),
            counted(self.num_queries, "query", "queries"),
            counted(self.features.shape[1], "feature", "features"),
        ]
        return f"<Context: {', '.join(words)}>"


def _array(k: int, name: str, given: npt.ArrayLike) -> npt.NDArray[Any]:
    """An array of episode k."""
    try:
        return np.asarray(unmasked(f"episode {k}: {name}", given))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"episode {k}: {name}: {error}") from None


def _flag_of(k: int, given: bool) -> bool:
    """The flag of episode k."""
    flags = flags_of(given)
    if flags is None or np.ndim(given):
        raise InputError(f"terminated: that of episode {k} is {given!r}, expected true or false")
    return flags[0]


def _rebuilt(episodes: list[Any], queries: Floats | None) -> Context:
    return Context.from_episodes(episodes, queries=queries)


def as_context(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    queries: npt.ArrayLike | None = None,
) -> Context:
    """A context as it is, or from its arrays."""
    if isinstance(features, Context):
        parts = {"rewards": rewards, "episode": episode, "terminated": terminated, "queries": queries}
        beside = [name for name, part in parts.items() if part is not None]
        if beside:
            raise InputError(f"{beside[0]}: found beside a context, which has its own")
        return features
    if rewards is None:
        raise InputTypeError("rewards: missing beside features, which are no context")
    return Context(features, rewards, episode=episode, terminated=terminated, queries=queries)


def rows_of(episode: npt.ArrayLike | None) -> list[int] | None:
    """The number of rows of every episode, from a label for every row."""
    if episode is None:
        return None
    labels = np.asarray(unmasked("episode", episode))
    if labels.ndim != 1:
        raise InputError(f"episode has shape {labels.shape}, expected one label for every row of features")
    if len(labels) == 0:
        return []
    starts = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]]))
    found = labels[starts].tolist()
    seen: set[Any] = set()
    for label in found:
        if label in seen:
            raise InputError(f"episode: {label!r} comes back after another, expected the rows of an episode one after another")
        if label != label:
            raise InputError(f"episode: a label is {label!r}, expected labels that can be told apart")
        seen.add(label)
    return [int(rows) for rows in np.diff(np.concatenate([starts, [len(labels)]]))]


def flags_of(terminated: Flags | None) -> list[bool] | None:
    """Whether each episode ends in a terminal state; one flag is for all."""
    if terminated is None:
        return None
    found = np.asarray(unmasked("terminated", terminated))
    # A text that says so is none: "False" would be true.
    said = found.dtype.kind == "b" or all(not isinstance(flag, (str, bytes)) and flag in (False, True) for flag in found.ravel().tolist())
    if found.ndim > 1 or not said:
        raise InputError(f"terminated is {terminated!r}, expected true or false, for all episodes or for each")
    return [bool(flag) for flag in found.ravel()]
