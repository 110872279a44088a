"""Training of the paper's block, and what it leaves: runs, curves, checkpoints."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt

from ictd import _core, _html
from ictd._checks import given, whole
from ictd._given import Path, Seeds, assignments, seeds_text, toml
from ictd._progress import Callback, watched
from ictd.errors import InputTypeError
from ictd.tasks import TaskSource
from ictd.results import Column, Figure, Result

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]

__all__ = ["Checkpoint", "Run", "load_checkpoint", "load_run", "pretrain", "print_config", "runs"]

Array = npt.NDArray[np.float64]
Which = Literal["final", "best"]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The parameters of a step of training and the Transformer that they belong to.

    ``V`` and ``A`` are the paper's matrices, untransposed: (d+3, d+3) where layers share them, and (L, d+3, d+3) where they do
    not. ``seed`` and ``step`` say which step of which run they are of.

    >>> import ictd
    >>> checkpoint = ictd.pretrain(seeds=1, epochs=2, batch=4).checkpoint(0)
    >>> checkpoint.V.shape, checkpoint.gamma, sorted(checkpoint.scores())
    ((7, 7), 0.9, ['a_em', 'a_em_signed', 'branch', 'v_em', 'v_em_signed'])
    >>> ictd.Transformer(checkpoint.gamma, params=checkpoint).layers == checkpoint.layers
    True
    """

    V: Array
    A: Array
    kernel: str
    temperature: float
    gamma: float
    layers: int
    step_size: float
    block: str
    diagonal_mix: float
    step: int
    seed: int
    mask: str
    n: int
    query: str
    _scores: dict[str, Any] = field(repr=False)
    _bytes: bytes = field(repr=False)

    def scores(self) -> dict[str, Any]:
        """What emerged in the first layer: ``branch`` (``"td"``, ``"mirror"`` or ``"none"``), the paper's emergence scores ``v_em``
        and ``a_em``, and both with the sign of the solution."""
        return dict(self._scores)

    def save(self, path: Path) -> None:
        """Writes the checkpoint in the safetensors format, as training with files does."""
        with open(path, "wb") as file:
            file.write(self._bytes)

    def to_block(self) -> Any:
        """The parameters as an :class:`ictd.Block`."""
        from ictd import blocks  # type: ignore[attr-defined, unused-ignore]

        names = ("V", "A", "kernel", "temperature", "gamma", "layers", "step_size", "block", "diagonal_mix")
        return blocks.Block(**{name: getattr(self, name) for name in names})


def _checkpoint(path: Path, content: bytes) -> Checkpoint:
    found = _core.read_checkpoint(path, content)
    said = found["said"]
    return Checkpoint(
        V=found["V"],
        A=found["A"],
        kernel=said["kernel"],
        temperature=float(said["temperature"]),
        gamma=float(said["gamma"]),
        layers=int(said["layers"]),
        step_size=float(said["step_size"]),
        block=said["block"],
        diagonal_mix=float(said["diagonal_mix"]),
        step=found["step"],
        seed=found["seed"],
        mask=said["mask"],
        n=int(said["n"]),
        query=said["query"],
        _scores=found["scores"],
        _bytes=content,
    )


def load_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in a file that training wrote, here or on the command line; damage is seen and refused.

    >>> import tempfile, ictd
    >>> run = ictd.pretrain(seeds=1, epochs=2, batch=4)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     run.checkpoint(0).save(f"{directory}/last.safetensors")
    ...     checkpoint = ictd.load_checkpoint(f"{directory}/last.safetensors")
    >>> checkpoint.step, checkpoint.V.shape, checkpoint.kernel
    (10, (7, 7), 'softmax')
    """
    # Errors of reading are told as the library tells them.
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        _core.read_checkpoint(path)
        raise
    return _checkpoint(path, content)


class Run(list[dict[str, Any]]):
    """Trained seeds: a list with a dictionary each, of the keys of the command line's ``pretrain --json``.

    A seed's dictionary has ``seed``; at the final step ``branch``, ``v_em``, ``a_em``, ``v_em_signed``, ``a_em_signed``,
    ``value_row``, ``score_diag``, and on fresh tasks ``diag_mean``, ``diag_min``, ``td_loss``, ``msve``, ``msve_theta_star``;
    ``best_step``, and the same at that step under ``best``. Numbers that are not known are None.

    >>> import ictd
    >>> run = ictd.pretrain(seeds=2, epochs=2, batch=4)
    >>> run.seeds, len(run), run.config["epochs"], run[0]["seed"]
    ([0, 1], 2, 2, 0)
    """

    def __init__(self, trained: _core.Trained) -> None:
        self._trained = trained
        self._result = Result(trained.report())
        super().__init__(self._result["seeds"])

    @property
    def seeds(self) -> list[int]:
        """The seeds, in their order."""
        return [found["seed"] for found in self]

    @property
    def train_seconds(self) -> float:
        """Wall time of training all seeds; 0 where all were finished before."""
        return float(self._result["train_seconds"])

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration, every key."""
        return tomllib.loads(self._trained.config())

    @property
    def name(self) -> str:
        """The preset or the file that was trained."""
        return self._trained.name

    @property
    def directory(self) -> str | None:
        """The run directory; None where training was in memory."""
        return None if self._trained.directory is None else os.fspath(self._trained.directory)

    def curves(self) -> dict[str, Column]:
        """What was measured during training: columns ``seed``, ``step`` and every metric, a row per seed and gradient step.

        Metrics that begin with ``eval_`` are measured once per epoch: elsewhere they are NaN.
        ``pandas.DataFrame(run.curves())`` takes it as it is.
        """
        return self._trained.curves()

    def to_pandas(self) -> pandas.DataFrame:
        """A row per seed, the best step's columns with names like ``best.v_em``, as in the tables of sweeps."""
        import pandas

        flat = []
        for found in self:
            best = {f"best.{key}": value for key, value in found["best"].items()}
            flat.append({key: value for key, value in found.items() if key != "best"} | best)
        return pandas.DataFrame(flat)

    def checkpoint(self, seed: SupportsIndex, which: Which = "final") -> Checkpoint:
        """The parameters of a seed, at the final step or at the one with the largest min(V_em, A_em)."""
        return _checkpoint(f"seed {seed}, {which}", self._trained.checkpoint(whole("seed", seed), which))

    @property
    def figures(self) -> dict[str, Figure]:
        """Figure 3 (matrices, and scores against kernel diagonality) and Figure 5 (kernel diagonality over training)."""
        return self._result.figures

    @property
    def tables(self) -> dict[str, dict[str, Column]]:
        """The numbers behind the figures."""
        return self._result.tables

    def save(self, directory: Path) -> str:
        """Writes the run directory that training with ``out=directory`` would have made, figures included, and says where it is.
        :func:`load_run` reads it."""
        return os.fspath(self._trained.save(directory))

    def text(self, width: int = 100) -> str:
        """What the command line prints, in lines of at most ``width`` characters."""
        return self._result.text(width)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        keys = ["seed", "branch", "v_em", "a_em", "v_em_signed", "a_em_signed", "diag_mean", "td_loss", "msve", "best_step"]
        header = ["seed", "branch", "V_em", "A_em", "signed V", "signed A", "d_t", "TD loss", "MSVE", "best step"]
        branches = [found["branch"] for found in self]
        counts = ", ".join(f"{branches.count(name)} {name}" for name in ("td", "mirror", "none") if name in branches)
        caption = f"<p>{len(self)} seed{'s' * (len(self) != 1)}: {counts}</p>"
        rows = ([found[key] for key in keys] for found in self)
        return _html.page(_html.table(header, rows), caption, _html.figures(self.figures.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, self._trained.parts())


def _restored(text: str, states: list[tuple[int, bytes]], directory: os.PathLike[str] | None) -> Run:
    return Run(_core.Trained.of_parts(text, states, directory))


def _start(config: object) -> tuple[str | None, str | None, tuple[str, str] | None]:
    """A preset's name, a file, or a dictionary as a file's content."""
    if isinstance(config, Mapping):
        return None, None, ("dict", toml(config, dotted=True))
    if isinstance(config, os.PathLike):
        return None, os.fspath(config), None
    if isinstance(config, str):
        is_file = config.endswith(".toml") or os.sep in config
        return (None, config, None) if is_file else (config, None, None)
    raise InputTypeError(f"preset is a {type(config).__name__}, expected a name, a TOML file or a dictionary of keys")


def pretrain(
    preset: str | os.PathLike[str] | Mapping[str, object] = "paper",
    seeds: Seeds = range(5),
    *,
    task: str | os.PathLike[str] | TaskSource | None = None,
    set: Mapping[str, object] | Iterable[str] | None = None,
    out: Path | None = None,
    resume: bool = False,
    fresh: bool = False,
    checkpoint_every: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    callback: Callback | None = None,
    progress: bool | None = None,
    **overrides: object,
) -> Run:
    """Trains the block with multi-task TD, θ ← θ + α δ ∇v̂ on a fresh task per epoch, every seed on its own.

    ``preset`` is ``paper``, ``mask-full``, ``mask-relaxed`` or ``predecessor``, a TOML file, or a dictionary of keys that differ
    from the paper's setting. Keywords change keys, two underscores for a dot (``optimizer__lr=3e-4``); ``set`` takes them as they
    are (``{"optimizer.lr": 3e-4}``); :func:`print_config` lists all. ``seeds`` is a number (5 for 0 to 4), a range, a list, or a
    text like ``"0..5,10"``. ``task`` is a family's name, a task file, or an object that draws tasks (:class:`ictd.TaskSource`).

    Nothing is written unless ``out`` is given: a run directory is made below it, as by ``ictd pretrain --out``. Finished seeds
    there are taken as they are, or trained anew with ``fresh``; after Ctrl-C ``resume`` goes on from the last checkpoints and ends
    with the bytes of an uninterrupted run. Results are the same with any number of ``threads`` (default: one per core).
    ``callback`` is told how far training is, and ends it by raising; ``progress`` writes a line to stderr (default: where that is
    a terminal).

    >>> import ictd
    >>> run = ictd.pretrain(seeds=2, epochs=3, batch=8, kernel="linear", optimizer__lr=1e-2)
    >>> [found["branch"] for found in run], run.curves()["td_loss"].shape
    (['none', 'none'], (30,))
    """
    name, file, written = _start(preset)
    # What names tasks comes before the keys that change them.
    is_named = isinstance(task, (str, os.PathLike))
    changes = assignments({"task": task} if is_named else None, {}) + assignments(set, overrides)
    with watched(callback, progress) as told:
        trained = _core.pretrain_seeds(
            name,
            file,
            written,
            changes,
            seeds_text(seeds),
            None if is_named else task,
            out,
            fresh,
            resume,
            given("checkpoint_every", checkpoint_every),
            given("threads", threads),
            told,
        )
    return Run(trained)


def print_config(preset: str | os.PathLike[str] | Mapping[str, object] = "paper", **overrides: object) -> str:
    """The resolved configuration as TOML with a comment on every key: what it is for, its values, its default.

    >>> import ictd
    >>> print(ictd.print_config(n=20).splitlines()[1])
    # contexts per minibatch: 1 to 100000 [default: 64]
    """
    name, file, written = _start(preset)
    return _core.print_config(name, file, written, assignments(None, overrides))


def load_run(directory: Path) -> Run:
    """The finished seeds of a run directory, whoever trained them; ``directory`` may be one above it that has no other.

    >>> import tempfile, ictd
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     there = ictd.pretrain(seeds=1, epochs=2, batch=4).save(directory)
    ...     run = ictd.load_run(directory)
    >>> run.seeds, run.config["epochs"]
    ([0], 2)
    """
    return Run(_core.load_run(directory))


class _Runs(Result):
    """The run directories below a directory."""

    def _repr_html_(self) -> str:
        header = ["hash", "setting", "changes", "finished", "unfinished", "diverged", "damaged", "td", "mirror", "none", "TD loss", "MSVE"]
        rows = []
        for run in self["results"]:
            changes = " ".join(f"{key}={value}" for key, value in run["changes"].items())
            seeds = [run[key] for key in ("finished", "unfinished", "diverged", "damaged")]
            ends = [run[key]["seeds"] for key in ("td", "mirror", "none")]
            rows.append([run["hash"], run["name"], changes, *seeds, *ends, run["td_loss"], run["msve"]])
        return _html.page(_html.table(header, rows))


def runs(directory: Path = "runs", *, verify: bool = False, callback: Callback | None = None) -> Result:
    """All run directories in a directory and below, as ``ictd runs``: what differs, how many seeds are finished and where they
    ended. ``verify`` compares every file of finished seeds with its digest. The list is ``["results"]``.

    >>> import tempfile, ictd
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     _ = ictd.pretrain(seeds=1, epochs=2, batch=4, out=directory)
    ...     found = ictd.runs(directory)
    >>> [(run["name"], run["finished"]) for run in found["results"]]
    [('paper', 1)]
    """
    return _Runs(_core.list_runs(directory, verify, callback))
