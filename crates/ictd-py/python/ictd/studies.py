"""Studies of the laboratory: reproduction of a paper, branches, readings, the mirror block, control."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal, SupportsIndex

from ictd import _core, _html
from ictd._checks import flag, given, whole
from ictd._given import Path, Seeds, assignments, seeds_text
from ictd._progress import Callback, watched
from ictd.errors import InputTypeError
from ictd.results import Figure, Result

__all__ = ["Reproduction", "branches", "control", "mirror", "readings", "reproduce"]


class _FileFigure(Figure):
    """A figure that a reproduction wrote beside its report."""

    def __init__(self, directory: str, name: str) -> None:
        self._directory = directory
        self.name = name

    def _content(self, ending: str) -> bytes:
        with open(os.path.join(self._directory, f"{self.name}.{ending}"), "rb") as file:
            return file.read()

    def svg(self) -> str:
        return self._content("svg").decode()

    def save(self, path: str | os.PathLike[str]) -> None:
        from ictd.errors import InputError

        ending = os.fspath(path).rpartition(".")[2].lower()
        if ending not in ("svg", "png", "pdf"):
            raise InputError(f"figure is to be written to '{os.fspath(path)}', expected a name that ends in .svg, .pdf or .png")
        content = self._content(ending)
        with open(path, "wb") as file:
            file.write(content)


class Reproduction(Result):
    """Claims of a paper and their verdicts. The report with all of it is ``report.html`` in :attr:`directory`.

    >>> import tempfile, ictd
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     found = ictd.reproduce(only="tsm-cost", quick=True, out=directory)
    >>> found.verdicts, [claim["id"] for claim in found["claims"]]
    ({'tsm-cost': 'reproduced'}, ['tsm-cost'])
    """

    def __init__(self, report: _core.Report, directory: str) -> None:
        super().__init__(report)
        self.directory = directory

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict of every claim, by the claim's name."""
        return {claim["id"]: claim["verdict"] for claim in self["claims"]}

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures of the claims, by name, as they were written to the directory."""
        names = dict.fromkeys(claim["figure"] for claim in self["claims"] if claim["figure"])
        there = (name for name in names if os.path.isfile(os.path.join(self.directory, f"{name}.svg")))
        return {name: _FileFigure(self.directory, name) for name in there}

    def _repr_html_(self) -> str:
        rows = [[claim["id"], claim["paper"], claim["verdict"], claim["measured"]] for claim in self["claims"]]
        table = _html.table(["claim", "in the paper", "verdict", "measured"], rows, most=100)
        return _html.page(table, _html.figures(self.figures.values()))


def _names(only: str | Iterable[str] | None) -> list[str]:
    if only is None:
        return []
    if isinstance(only, str):
        return only.split(",")
    names = list(only)
    for name in names:
        if not isinstance(name, str):
            raise InputTypeError(f"only has a {type(name).__name__}, expected names of claims or studies")
    return names


def reproduce(
    paper: Literal["main", "predecessor"] = "main",
    only: str | Iterable[str] | None = None,
    quick: bool = False,
    *,
    seeds: Seeds | None = None,
    seed: SupportsIndex = 0,
    fresh: bool = False,
    out: Path | None = None,
    threads: SupportsIndex | None = None,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Reproduction:
    """Reproduces every figure and claim of a paper, or those of the claims or studies in ``only``; ``["claims"]`` has a dictionary
    per claim with its ``verdict``.

    The report, figures and tables are written to ``out`` (default: ``out/reproduce``, or ``out/predecessor``), an empty directory
    or one of an earlier reproduction. Studies that are finished there, by the same build and with the same options, are not run
    again, unless ``fresh``. ``quick`` takes fewer samples and seeds: verdicts may differ. It can be ended between studies, and goes
    on with those that are left.

    >>> import tempfile, ictd
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     found = ictd.reproduce(only="tsm-cost", quick=True, out=directory)
    >>> found.verdicts
    {'tsm-cost': 'reproduced'}
    """
    directory = os.fspath(out) if out is not None else f"out/{'predecessor' if paper == 'predecessor' else 'reproduce'}"
    with watched(callback, progress) as told:
        chosen = None if seeds is None else seeds_text(seeds)
        found = _core.reproduce_paper(paper, _names(only), quick, chosen, whole("seed", seed), fresh, directory, given("threads", threads), told)
    return Reproduction(found, directory)


def branches(
    map: Literal["settings", "kernels"] = "settings",
    seeds: Seeds = range(100),
    *,
    set: Mapping[str, object] | Iterable[str] | None = None,
    fresh: bool = False,
    extend: bool = False,
    out: Path = "out/branches",
    threads: SupportsIndex | None = None,
    callback: Callback | None = None,
    progress: bool | None = None,
    **overrides: object,
) -> Result:
    """Maps which solution pretraining finds, over queries, sizes, temperatures and initial signs, or over kernels: ``["counts"]`` has
    the seeds of every setting by branch, with 95 % intervals of the TD block's share (Wilson).

    Keys of every setting are changed as in :func:`ictd.pretrain`. What is done is kept in ``out``, where tables and figures go too,
    and taken up by a later call of the same build; a directory of another map is refused, unless ``fresh`` empties it, or ``extend``
    keeps the runs that both maps have.

    >>> import tempfile, ictd
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     found = ictd.branches("kernels", seeds=1, out=directory, epochs=1, batch=2, n=3, states=4)
    >>> found["counts"][0]["seeds"]
    1
    """
    with watched(callback, progress) as told:
        changes = assignments(set, overrides)
        found = Result(_core.branch_map(map, seeds_text(seeds), changes, fresh, extend, out, given("threads", threads), told))
    found.save(out)
    return found


def readings(
    seeds: Seeds = range(20),
    *,
    set: Mapping[str, object] | Iterable[str] | None = None,
    fresh: bool = False,
    out: Path = "out/readings",
    threads: SupportsIndex | None = None,
    callback: Callback | None = None,
    progress: bool | None = None,
    **overrides: object,
) -> Result:
    """Searches the readings of the paper's experiment for those that show its figures: ``["rows"]`` has, for every reading and
    figure, how many seeds show it.

    Keys of every experiment are changed as in :func:`ictd.pretrain`. Finished experiments are kept in ``out``, and taken up by a
    later call of the same build unless ``fresh``. It takes minutes.

    >>> import tempfile, ictd
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     found = ictd.readings(seeds=1, out=directory, epochs=1, batch=2, n=3)
    >>> found["rows"][0]["figure"], found["rows"][0]["seeds"]
    ('fig3a', 1)
    """
    with watched(callback, progress) as told:
        changes = assignments(set, overrides)
        found = Result(_core.search_readings(seeds_text(seeds), changes, fresh, out, given("threads", threads), told))
    found.save(out)
    return found


def mirror(
    seeds: Seeds = range(40),
    *,
    epochs: SupportsIndex = 3000,
    tasks: SupportsIndex = 100,
    threads: SupportsIndex | None = None,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Result:
    """Explains the mirror block: how pretraining gets there, what it computes, what it costs.

    The path is that of all seeds; the first half of them are trained to every end, and the first quarter with A held. It takes
    minutes; :meth:`Result.save` writes its figures and tables.

    >>> import ictd
    >>> len(ictd.mirror(4, epochs=2, tasks=2)["ends"]) > 0
    True
    """
    with watched(callback, progress) as told:
        sizes = (whole("epochs", epochs), whole("tasks", tasks))
        return Result(_core.mirror_block(seeds_text(seeds), *sizes, given("threads", threads), told))


def control(
    *,
    seed: SupportsIndex = 0,
    mdps: SupportsIndex | None = None,
    updates: SupportsIndex | None = None,
    transitions: SupportsIndex | None = None,
    exact_mdps: SupportsIndex | None = None,
    sweeps: SupportsIndex | None = None,
    trials: SupportsIndex | None = None,
    verify: bool = False,
    threads: SupportsIndex | None = None,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Result:
    """Improves policies by attention: SARSA, Expected SARSA and Boltzmann TD on pairs of states and actions, against the algorithms,
    over β, and with what is certified. ``verify`` compares attention with the algorithms and does nothing else;
    :attr:`Result.holds` says whether every criterion is met.

    >>> import ictd
    >>> ictd.control(verify=True, trials=2).holds
    True
    """
    with watched(callback, progress) as told:
        sampled = (given("mdps", mdps), given("updates", updates), given("transitions", transitions))
        exact = (given("exact_mdps", exact_mdps), given("sweeps", sweeps), given("trials", trials))
        how = (flag("verify", verify), given("threads", threads), told)
        found = _core.improve_policies(whole("seed", seed), *sampled, *exact, *how)
    return Result(found)
