"""Logs: transitions as arrays, from files, data frames, Minari and lists of episodes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np

from ictd import _core
from ictd._checks import given as whole_or_none
from ictd._checks import real
from ictd._columns import Column, Floats, States, array, column, floats, frame_columns, is_frame, options
from ictd.errors import InputError, InputTypeError
from ictd._progress import Callback, watched
from ictd.results import Result

__all__ = ["Log", "as_log", "evaluate", "read_log", "targets"]


@dataclass(frozen=True)
class Log:
    """Transitions, one row each, as the estimators take them: ``estimator.fit(log)``.

    An episode of T steps that was cut short has a last row without a reward (NaN), the state that it ended in; one that terminated has T rows.

    Attributes:
        states: (N, d) numbers, or N labels.
        rewards: (N,); NaN in the last row of an episode that was cut short.
        episode: the name of the episode of every row.
        terminated: 1 where a transition led to a terminal state.
        truncated: 1 where recording ended.
        time: times of the calendar, where there are some.
        next_state: states that followed, where they are not those of the next rows.
        columns: names of the features.
        warnings: what is doubtful about the log.

    >>> import ictd
    >>> log = ictd.as_log([{"observations": [[0.0], [1.0], [2.0]], "rewards": [0.0, 1.0], "terminations": [False, True]}])
    >>> len(log), log.rewards.tolist(), log.episode
    (2, [0.0, 1.0], ['0', '0'])
    """

    states: Column
    rewards: Floats
    episode: Column | None = None
    terminated: Column | None = None
    truncated: Column | None = None
    time: Column | None = None
    next_state: Column | None = None
    columns: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = self.columns
        for name in ("states", "next_state"):
            given = getattr(self, name)
            if given is not None and not _is_plain(given, dimensions=2):
                states = States(given, name)
                object.__setattr__(self, name, states.values)
                names = names or tuple(states.names or ())
        object.__setattr__(self, "columns", tuple(names))
        object.__setattr__(self, "warnings", tuple(self.warnings))
        paid = floats(self.rewards, "rewards")
        if paid.ndim != 1:
            raise InputError(f"rewards has shape {paid.shape}, expected one dimension")
        object.__setattr__(self, "rewards", np.ascontiguousarray(paid))
        for name in ("episode", "terminated", "truncated", "time"):
            given = getattr(self, name)
            if given is not None and not _is_plain(given, dimensions=1):
                object.__setattr__(self, name, column(given, name))

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def is_label(self) -> bool:
        """Whether states are labels and not features."""
        return isinstance(self.states, list) or self.states.ndim == 1

    @property
    def targets(self) -> Floats:
        """Rewards, episodes and ends as one array that scikit-learn slices: see :func:`targets`.

        They have no place for times and next states: a log with these is for ``fit(log)``.
        """
        for name in ("next_state", "time"):
            if getattr(self, name) is not None:
                raise InputError(f"targets: the log has {name}, for which targets have no place: give the log to fit")
        return targets(self.rewards, self.episode, self.terminated, self.truncated)

    def arrays(self) -> dict[str, Any]:
        """The columns by the names of the library."""
        return {
            "columns": list(self.columns) or (["state"] if self.is_label else [f"x{k}" for k in range(np.shape(self.states)[1])]),
            "is_label": self.is_label,
            "states": self.states,
            "next_state": self.next_state,
            "rewards": self.rewards,
            "episode": self.episode,
            "time": self.time,
            "terminated": self.terminated,
            "truncated": self.truncated,
        }

    def __repr__(self) -> str:
        kind = "labels" if self.is_label else f"{np.shape(self.states)[1]} features"
        episodes = len(set(np.asarray(self.episode).tolist())) if self.episode is not None else 1
        return f"<log of {len(self)} rows, {episodes} episodes, {kind}>"


def _is_plain(given: object, dimensions: int) -> bool:
    """Whether it is as the library takes it: ``int64`` of one dimension, ``float64`` of so many, or a list of texts."""
    if type(given) is np.ndarray:
        return given.dtype == np.int64 and given.ndim == 1 or given.dtype == np.float64 and given.ndim == dimensions
    return isinstance(given, list) and all(type(entry) is str for entry in given)


def targets(rewards: object, episode: object = None, terminated: object = None, truncated: object = None) -> Floats:
    """Rewards, episodes and ends as one (N, 3) array of ``float64``, which ``fit`` and ``score`` of the estimators understand as ``y``.

    Cross-validation of scikit-learn slices ``X`` and ``y`` alike, so that episodes and ends survive it. Columns: the reward; the number of the
    episode (NaN where none is given; names become numbers in their order); how the step ended (0 goes on, 1 terminated, 2 truncated, 3 both; NaN
    where nothing says so).

    >>> import ictd
    >>> ictd.targets([1.0, 2.0, 5.0], ["a", "a", "b"], terminated=[False, True, True]).tolist()
    [[1.0, 0.0, 0.0], [2.0, 0.0, 1.0], [5.0, 1.0, 1.0]]
    """
    paid = floats(rewards, "rewards")
    if paid.ndim != 1:
        raise InputError(f"rewards has shape {paid.shape}, expected one dimension")
    found = np.full((len(paid), 3), np.nan)
    found[:, 0] = paid
    if episode is not None:
        names = column(episode, "episode")
        if len(names) != len(paid):
            raise InputError(f"episode: found {len(names)} rows, expected {len(paid)} as there are rewards")
        # Numbers of one's own may be too large to be told apart as float64. NaN, which is no name, stays.
        numbers = np.unique(np.asarray(names), return_inverse=True)[1].astype(np.float64)
        found[:, 1] = numbers if isinstance(names, list) else np.where(np.isnan(names), np.nan, numbers)
    for name, given, code in (("terminated", terminated, 1), ("truncated", truncated, 2)):
        if given is None:
            continue
        flags = floats(given, name)
        if flags.shape != paid.shape:
            raise InputError(f"{name} has shape {flags.shape}, expected {paid.shape} as there are rewards")
        if not bool(np.all(np.isin(flags, (0.0, 1.0)) | np.isnan(paid))):
            raise InputError(f"{name}: found an entry that is neither true nor false")
        found[:, 2] = np.nan_to_num(found[:, 2]) + code * np.nan_to_num(flags)
    return found


def of_targets(y: Floats) -> dict[str, Any]:
    """The columns in an array of :func:`targets`."""
    episode, ends = y[:, 1], y[:, 2]
    told = bool(len(y)) and not bool(np.all(np.isnan(ends)))
    if told and not bool(np.all(np.isin(ends, (0.0, 1.0, 2.0, 3.0)))):
        raise InputError("y has three columns, expected those of ictd.targets: reward, episode, and 0 to 3 for how the step ended")
    codes = ends.astype(np.int64) if told else None
    return {
        "rewards": np.ascontiguousarray(y[:, 0]),
        "episode": None if len(y) and bool(np.all(np.isnan(episode))) else column(episode, "episode"),
        "terminated": None if codes is None else codes & 1,
        "truncated": None if codes is None else codes >> 1,
    }


def _of_library(found: Mapping[str, Any]) -> Log:
    fields = {name: found[name] for name in ("states", "rewards", "episode", "terminated", "truncated", "time")}
    return Log(**fields, columns=tuple(found["columns"]), warnings=tuple(found["warnings"]))


def read_log(path: str | os.PathLike[str], *, threads: SupportsIndex | None = None, **columns: object) -> Log:
    """Reads a log from a file that ``ictd evaluate`` reads: CSV, TSV, JSON lines, NPY, NPZ, HDF5, Arrow, Parquet, a Minari data set by folder or id.

    Columns are guessed from their names, or said: ``episode=``, ``time=``, ``state=``, ``reward=``, ``terminated=``, ``truncated=``; ``missing=``
    is "refuse" (the default), "drop" or "mean".

    >>> import ictd
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("episode,x,reward,terminated\\na,0.5,1,0\\na,1.5,2,1\\nb,0.5,0,0\\nb,2.5,,\\n")
    >>> ictd.read_log(path)
    <log of 4 rows, 2 episodes, 1 features>
    """
    return _of_library(_core._read_log(os.fspath(path), None, options(**columns), whole_or_none("threads", threads)))


def as_log(data: Any, *, threads: SupportsIndex | None = None, **columns: object) -> Log:
    """A log from whatever holds one.

    ``data`` is a path (see :func:`read_log`); a frame of pandas or polars or anything with Arrow's ``__arrow_c_stream__`` (through pyarrow), whose
    columns are guessed or said as those of files are; a Minari data set; or episodes: mappings or objects with ``observations`` (T + 1, or T where
    the episode terminated), ``rewards`` (T), and ``terminations`` and ``truncations`` (T, or one truth value; also ``terminated``, ``truncated``).

    >>> import ictd
    >>> episode = {"observations": [3, 4, 5], "rewards": [1.0, 0.0], "truncations": [False, True]}
    >>> log = ictd.as_log([episode])
    >>> log.states.tolist(), log.rewards.tolist()
    ([3, 4, 5], [1.0, 0.0, nan])
    """
    if isinstance(data, Log):
        return data
    if isinstance(data, (str, os.PathLike)):
        return read_log(data, threads=threads, **columns)
    if hasattr(data, "iterate_episodes"):
        return _of_episodes(data.iterate_episodes())
    if is_frame(data):
        found = {str(name): _entries(part, str(name)) for name, part in frame_columns(data).items()}
        return _of_library(_core._read_log(None, found, options(**columns), whole_or_none("threads", threads)))
    if isinstance(data, Iterable):
        return _of_episodes(data)
    raise InputTypeError(f"log is {type(data).__name__}, expected a path, a frame, a Minari data set or episodes")


def _entries(part: Any, name: str) -> Column:
    """A column of a frame; lists of numbers are rows of features."""
    made = np.asarray(part)
    if made.dtype.kind == "O" and len(made) and isinstance(made[0], (list, tuple, np.ndarray)):
        return np.ascontiguousarray(floats(np.stack([np.asarray(row) for row in made]), name))
    if made.dtype.kind == "f":
        return np.ascontiguousarray(made, dtype=np.float64)
    return column(made, name)


def _field(episode: Any, *names: str) -> Any:
    for name in names:
        found = episode.get(name) if isinstance(episode, Mapping) else getattr(episode, name, None)
        if found is not None:
            return found
    return None


def _flags(given: Any, steps: int, name: str) -> bool:
    """Whether the last step has the flag."""
    if given is None:
        return False
    made = np.atleast_1d(np.asarray(given))
    if made.shape not in ((1,), (steps,)):
        raise InputError(f"{name} has shape {made.shape}, expected ({steps},) as there are rewards")
    if len(made) > 1 and bool(np.any(made[:-1])):
        raise InputError(f"{name}: found a flag before the last step, expected it there alone")
    return bool(made[-1])


def _of_episodes(episodes: Iterable[Any]) -> Log:
    states: list[Any] = []
    rewards: list[Floats] = []
    names: list[str] = []
    ends: list[Any] = []
    for number, episode in enumerate(episodes):
        place = f"episode {number}"
        seen, paid = _field(episode, "observations", "states"), _field(episode, "rewards")
        if seen is None or paid is None:
            raise InputError(f"{place}: found no {'observations' if seen is None else 'rewards'}, expected observations and rewards")
        if isinstance(seen, (Mapping, tuple)):
            raise InputTypeError(f"{place}: observations are a {type(seen).__name__}, expected one array")
        observed, paid = array(seen, f"{place}, observations"), floats(paid, f"{place}, rewards")
        steps = len(paid)
        terminated = _flags(_field(episode, "terminations", "terminated"), steps, f"{place}, terminations")
        truncated = _flags(_field(episode, "truncations", "truncated"), steps, f"{place}, truncations") and not terminated
        if len(observed) not in (steps, steps + 1) or not steps:
            raise InputError(f"{place}: found {len(observed)} observations, expected {steps + 1} for {steps} rewards, and at least one reward")
        rows = steps if terminated else len(observed)
        states.append(observed[:rows].reshape(rows, -1) if observed.ndim > 1 else observed[:rows])
        rewards.append(np.concatenate([paid, np.full(rows - steps, np.nan)]))
        names += [str(_field(episode, "id") if _field(episode, "id") is not None else number)] * rows
        end = np.zeros((rows, 2), dtype=np.int64)
        end[steps - 1] = terminated, truncated
        ends.append(end)
    if not states:
        raise InputError("episodes: found none, expected at least one")
    flags = np.concatenate(ends)
    try:
        joined = np.concatenate(states)
    except ValueError as error:
        raise InputError(f"observations: {error}") from None
    found = States(joined if joined.ndim > 1 or joined.dtype.kind != "f" else joined[:, np.newaxis], "observations")
    return Log(found.values, np.concatenate(rewards), names, flags[:, 0].copy(), flags[:, 1].copy())


def evaluate(
    log: Any,
    gamma: float,
    *,
    query: str | os.PathLike[str] | None = None,
    threads: SupportsIndex | None = None,
    callback: Callback | None = None,
    progress: bool | None = None,
    **given: object,
) -> Result:
    """The value of every state in a log, with intervals and a judgement: what ``ictd evaluate`` does.

    ``log`` is a path, or whatever :func:`as_log` takes. Options are those of the command: ``estimator``, ``scale``, ``kernel``, ``temperature``,
    ``layers``, ``ridge``, ``lambda_``, ``compare``, ``seed``, ``strict``, the columns (``episode``, ``time``, ``state``, ``reward``, ``terminated``,
    ``truncated``, ``id``), ``missing``; ``query`` is a file with the states that values are wanted of. ``callback`` is told how far it is, and
    ends it by raising; ``progress`` writes a line to stderr (default: where that is a terminal).

    Returns a :class:`Result` with the keys of the command's JSON: ``judgement``, ``reasons``, ``chosen``, ``rows``, ``mean``, ….

    >>> import ictd
    >>> log = ictd.as_log([{"observations": [0.0, 1.0, 2.0], "rewards": [0.0, k % 2], "terminated": True} for k in range(40)])
    >>> found = ictd.evaluate(log, 0.9)
    >>> found["judgement"], len(found["rows"])
    ('caution', 2)
    """
    if "lambda_" in given:
        given["lambda"] = given.pop("lambda_")
    place = None if query is None else os.fspath(query)
    workers = whole_or_none("threads", threads)
    if isinstance(log, (str, os.PathLike)):
        asked = options(gamma=real("gamma", gamma), **given)
        with watched(callback, progress) as told:
            return Result(_core._evaluate(os.fspath(log), None, asked, place, workers, told))
    names = ("episode", "time", "state", "reward", "terminated", "truncated", "missing")
    if given.get("id") is not None:
        raise InputError("id: expected a path beside it; a log in memory has none")
    columns = {name: given.pop(name) for name in names if name in given}
    found = as_log(log, threads=threads, **columns)
    asked = options(gamma=real("gamma", gamma), **given)
    with watched(callback, progress) as told:
        return Result(_core._evaluate(None, found.arrays(), asked, place, workers, told))
