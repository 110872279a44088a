"""Sweeps: every combination of what a plan varies, trained with every seed, as one table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from ictd import _core, _html
from ictd._checks import given
from ictd._given import Path, Seeds, assignments, seeds_text, toml
from ictd._progress import Callback, watched
from ictd.errors import InputTypeError
from ictd.results import Column, Result, columns

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]
    import polars  # type: ignore[import-untyped, import-not-found, unused-ignore]

__all__ = ["SweepTable", "read_sweep", "sweep", "sweep_show"]


class SweepTable(dict[str, Column]):
    """The runs of a sweep, a column per key that varies, ``seed``, and what ``ictd pretrain --json`` says of a seed, the best step's
    columns with names like ``best.v_em``. Runs that diverged have no numbers, and ``branch`` is ``"diverged"``.

    >>> import tempfile, ictd
    >>> plan = {"seeds": 2, "set": {"epochs": 2, "batch": 4}, "grid": {"kernel": ["softmax", "linear"]}}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     table = ictd.sweep(plan, directory)
    >>> table.done, table.runs, table.varied, table["seed"].tolist()
    (4, 4, ['kernel'], [0, 1, 0, 1])
    """

    def __init__(self, directory: str, text: str, runs: int) -> None:
        super().__init__({name: _lists(name, column) for name, column in columns(text).items()})
        self.directory = directory
        #: How many runs there are when all are done.
        self.runs = runs
        self._text = text

    @property
    def done(self) -> int:
        """How many runs are done: the rows."""
        return len(self["seed"])

    @property
    def varied(self) -> list[str]:
        """The keys that vary, before the seed."""
        names = list(self)
        return names[: names.index("seed")]

    def csv(self) -> str:
        """The table as it stands in ``results.csv``."""
        return self._text

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame."""
        import pandas

        return pandas.DataFrame(dict(self))

    def to_polars(self) -> polars.DataFrame:
        """As a data frame."""
        import polars

        def plain(column: Column) -> Any:
            return [None if cell is None else cell.tolist() for cell in column] if column.dtype == object else column

        return polars.DataFrame({name: plain(column) for name, column in self.items()})

    def show(self, **asked: Any) -> Result:
        """As :func:`sweep_show` looks at it."""
        return sweep_show(self.directory, **asked)

    def __repr__(self) -> str:
        state = "" if self.done == self.runs else f" of {self.runs}"
        return f"<sweep in {self.directory}: {self.done}{state} runs over {', '.join(self.varied) or 'one setting'}>"

    def _repr_html_(self) -> str:
        return self.show()._repr_html_() if self.done else f"<p>{self!r}</p>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (SweepTable, (self.directory, self._text, self.runs))


def _lists(name: str, column: Column) -> Column:
    """Cells that are lists of numbers, as arrays; None where a run has none."""
    if name.rpartition(".")[2] not in ("value_row", "score_diag"):
        return column
    made = np.empty(len(column), dtype=object)
    for k, cell in enumerate(column):
        made[k] = np.array(json.loads(cell), dtype=float) if isinstance(cell, str) and cell else None
    return made


class _Overview(Result):
    """A sweep as it is looked at."""

    def _repr_html_(self) -> str:
        header = [*self["varied"], "runs", "td", "mirror", "none", "diverged", "TD share", f"{self['metric']}, IQM"]
        rows = []
        for setting in self["settings"]:
            share = f"{setting['td_share']:.2f} ({setting['td_low']:.2f}–{setting['td_high']:.2f})" if setting["td_share"] is not None else ""
            counts = [setting[key] for key in ("runs", "td", "mirror", "none", "diverged")]
            values = [value.replace("*", "") for value in setting["values"]]
            rows.append([*values, *counts, share, setting["iqm"]])
        caption = f"<p>{self['name']}: {self['done']} of {self['runs']} runs; in brackets 95 % intervals</p>"
        return _html.page(_html.figures(self.figures.values()), _html.table(header, rows), caption)


def sweep(
    plan: Path | Mapping[str, object],
    out: Path | None = None,
    *,
    seeds: Seeds | None = None,
    set: Mapping[str, object] | Iterable[str] | None = None,
    fresh: bool = False,
    extend: bool = False,
    threads: SupportsIndex | None = None,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> SweepTable:
    """Trains every combination of what a plan varies, with every seed, on the threads of this machine, and returns the table.

    ``plan`` is a TOML file, a plan of the program (``branches``, ``kernels`` or ``quick``), the directory of a sweep to go on with,
    or a dictionary with the keys of such a file: ``preset``, ``seeds``, ``metrics``, ``checkpoints``, ``set``, ``grid``, ``zip``,
    ``case``. ``set`` changes keys of every setting. Runs are kept in ``out`` (default: ``out/sweep/NAME``); the same call goes on
    where an interrupted one was, with the same bytes at the end.

    >>> import tempfile, ictd
    >>> plan = {"seeds": 2, "set": {"epochs": 2, "batch": 4}, "grid": {"kernel": ["softmax", "linear"]}}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     table = ictd.sweep(plan, directory)
    >>> table["kernel"].tolist(), table["seed"].tolist()
    (['softmax', 'softmax', 'linear', 'linear'], [0, 1, 0, 1])
    """
    written: tuple[str, str] | None = None
    path = "plan"
    if isinstance(plan, Mapping):
        written = ("sweep", toml(plan, dotted=False))
    elif isinstance(plan, (str, os.PathLike)):
        path = os.fspath(plan)
    else:
        raise InputTypeError(f"plan is a {type(plan).__name__}, expected a file, the name of a plan, a directory or a dictionary")
    with watched(callback, progress) as told:
        chosen = None if seeds is None else seeds_text(seeds)
        changes = assignments(set, {})
        directory = _core.run_sweep(path, written, out, changes, chosen, fresh, extend, given("threads", threads), told)
    return read_sweep(directory)


def read_sweep(directory: Path) -> SweepTable:
    """The table of a sweep, whoever ran it; of one that goes on, the runs that are done.

    >>> import tempfile, ictd
    >>> plan = {"seeds": 2, "set": {"epochs": 2, "batch": 4}, "grid": {"n": [3, 5]}}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     _ = ictd.sweep(plan, directory)
    ...     table = ictd.read_sweep(directory)
    >>> table.done, table.runs, table.varied
    (4, 4, ['n'])
    """
    return SweepTable(os.fspath(directory), *_core.sweep_table(directory))


def sweep_show(
    directory: Path,
    *,
    metric: str | None = None,
    x: str | None = None,
    y: str | None = None,
    statistic: str | None = None,
    callback: Callback | None = None,
) -> Result:
    """Looks at a sweep, finished or not, as ``ictd sweep show``: what its runs ended in by setting, a map over two of the keys
    that vary, curves. ``metric`` is a column of the table, ``x`` and ``y`` are keys (``y="none"`` puts all others together), and
    ``statistic`` is ``td``, ``mirror``, ``none``, ``diverged``, ``iqm`` or another that the library lists.

    >>> import tempfile, ictd
    >>> plan = {"seeds": 2, "set": {"epochs": 2, "batch": 4}, "grid": {"n": [3, 5]}}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     found = ictd.sweep(plan, directory).show()
    >>> [(setting["values"], setting["runs"]) for setting in found["settings"]]
    [(['3'], 2), (['5'], 2)]
    """
    return _Overview(_core.show_sweep(directory, metric, statistic, x, y, callback))
