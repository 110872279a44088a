"""Tasks, families of random tasks, and the protocol by which one's own are used."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, runtime_checkable

import numpy as np
import numpy.typing as npt

from ictd import _core
from ictd._checks import flag, given, listed, plain_path, real, some_real, whole, word
from ictd.blocks import Floats
from ictd.contexts import Context

__all__ = ["AnyTasks", "Family", "Task", "TaskSource", "families", "task"]

families: tuple[str, ...] = tuple(_core.families())
"""Names of the families."""


@runtime_checkable
class TaskSource(Protocol):
    """What tasks are drawn from: a family, a task (which draws itself), or any object of one's own with this method.

    A task that it draws is an :class:`ictd.Task`, or something that has the same as attributes or as keys of a dictionary: ``P`` (m, m), row s
    the law of the state after s; ``rewards`` (m,), paid on leaving a state; ``gamma`` in [0, 1); ``features`` (m, d); ``initial`` (m,), the law
    of the first state, or None for the uniform one; and ``values`` (m,), where they are known: v = r + γ P v. Numbers of states may differ
    between tasks; d and γ may not, and are those of task 0 of seed 0.
    """

    def draw(self, seed: int, index: int) -> Any:
        """The task of a seed and an index, always the same one for the same two numbers, in whatever order and from whatever thread it is
        asked for. Training of a seed asks for the tasks 0, 1, … of that seed, one per epoch, and measures itself on those from 2³² on."""
        ...


class Task:
    """A policy-evaluation task: a Markov reward process with finitely many states, its features, and what is known exactly about it.

    ``P`` (m, m) has rows p(· | s) and must be ergodic, ``rewards`` (m,) are paid on leaving a state, ``gamma`` is the discount,
    ``features`` (m, d), and ``initial`` (m,) is the law of the first state, uniform unless it is said.

    >>> task = Task([[0.5, 0.5], [0.5, 0.5]], [1.0, 0.0], 0.5, [[1.0, 0.0], [0.0, 1.0]])
    >>> task.values, task.stationary
    (array([1.5, 0.5]), array([0.5, 0.5]))
    >>> context, states = task.sample(5, seed=0)
    >>> context, states.shape
    (<Context: 5 transitions, 1 episode, 0 queries, 2 features>, (6,))
    """

    __slots__ = ("P", "_inner", "features", "initial", "rewards", "stationary", "values")
    _inner: _core.Task
    P: Floats
    """Transition probabilities, (m, m)."""
    features: Floats
    """Row s is x(s), (m, d)."""
    rewards: Floats
    """r(s), (m,)."""
    initial: Floats
    """p₀, (m,)."""
    values: Floats
    """v = (I − γP)⁻¹ r, (m,)."""
    stationary: Floats
    """μ with μP = μ, (m,)."""

    def __init__(
        self,
        P: npt.ArrayLike,
        rewards: npt.ArrayLike,
        gamma: float,
        features: npt.ArrayLike,
        initial: npt.ArrayLike | None = None,
    ) -> None:
        self._fill(_core.Task(P, rewards, real("gamma", gamma), features, initial, None))

    def _fill(self, core: _core.Task) -> None:
        arrays = dict(zip(("rewards", "initial", "values", "stationary"), core.lists(), strict=True))
        for name, array in {"P": core.transitions(), "features": core.features(), **arrays}.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "_inner", core)

    @classmethod
    def _of(cls, core: _core.Task) -> Task:
        made = cls.__new__(cls)
        made._fill(core)
        return made

    @classmethod
    def from_json(cls, text: str) -> Task:
        """From the text of a task file, as ``ictd task --json`` writes it."""
        return cls._of(_core.Task.from_json(text))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Task:
        """From a task file."""
        return cls._of(_core.Task.read(plain_path(path)))

    def to_json(self) -> str:
        """As a task file: what the task is, and what follows from it."""
        return self._inner.to_json()

    @property
    def gamma(self) -> float:
        """Discount γ."""
        return self._inner.gamma

    @property
    def num_states(self) -> int:
        """Number of states m."""
        return len(self.rewards)

    @property
    def eigenvalues(self) -> npt.NDArray[np.complex128]:
        """Those of P, by decreasing modulus."""
        re, im = self._inner.eigenvalues()
        return re + 1j * im

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of the additive reversibilisation (P + P*)/2, decreasing: the second is λ_r, and 1 − λ_r the right spectral gap."""
        return self._inner.reversibilisation_spectrum()

    @property
    def pair_lambda_r(self) -> float:
        """λ_r of the chain of pairs (s, s'), or 0 where it is negative."""
        return self._inner.pair_lambda_r()

    def sample(self, n: SupportsIndex, seed: SupportsIndex, index: SupportsIndex = 0) -> tuple[Context, npt.NDArray[np.uint64]]:
        """A context of one trajectory of ``n`` transitions from p₀, and its n + 1 states; ``index`` numbers the trajectories of a seed."""
        core, states = self._inner.sample(whole("n", n), whole("seed", seed), whole("index", index))
        return Context._of(core), states

    def context(self, states: Sequence[SupportsIndex], queries: Sequence[SupportsIndex] = ()) -> Context:
        """The context of a trajectory through these states, followed by queries."""
        return Context._of(self._inner.context(listed("states", states) or [], listed("queries", queries) or []))

    def draw(self, seed: int = 0, index: int = 0) -> Task:
        """Itself: a task is a source of one task."""
        return self

    def __eq__(self, other: object) -> bool:
        return self._inner == other._inner if isinstance(other, Task) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set: tasks do not change")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuilt, (self.P, self.rewards, self.gamma, self.features, self.initial, self.values))

    def __repr__(self) -> str:
        return f"<Task: {self.num_states} states, {self.features.shape[1]} features, gamma {self.gamma}>"


def _rebuilt(*parts: Any) -> Task:
    return Task._of(_core.Task(*parts))


class Family:
    """A family of random tasks by name, with its usual sizes where none are said.

    ============  =====================================================================================
    option        purpose
    ============  =====================================================================================
    states        number of states; figure-1: the largest; cartpole: bins per dimension
    features      feature dimension
    gamma         discount
    representable values linear in the features; otherwise rewards are drawn freely
    threshold     loop: probability of leaving out an edge
    one_hot       one feature per state instead of random ones
    unit_norm     feature vectors are divided by their length
    continuous    cartpole: the coordinates as features
    score_scale   scores are multiplied by this: A = scale·I
    ============  =====================================================================================

    >>> Family("boyan", states=8, gamma=0.8)
    <Family: Boyan, 8 states, 4 features, γ = 0.8, score scale 1>
    >>> Family("loop").draw(seed=0, index=3)
    <Task: 10 states, 5 features, gamma 0.9>
    """

    __slots__ = ("_inner", "_options", "name")
    _inner: _core.Family
    _options: dict[str, Any]
    name: str
    """The family's name."""

    def __init__(
        self,
        name: str,
        *,
        states: SupportsIndex | None = None,
        features: SupportsIndex | None = None,
        gamma: float | None = None,
        representable: bool = True,
        threshold: float | None = None,
        one_hot: bool = False,
        unit_norm: bool = False,
        continuous: bool = False,
        score_scale: float | None = None,
    ) -> None:
        options = sizes(states, features, gamma, not flag("representable", representable), threshold, one_hot, unit_norm, continuous, score_scale)
        object.__setattr__(self, "_inner", _core.Family(word("family", name), options))
        object.__setattr__(self, "_options", options)
        object.__setattr__(self, "name", name)

    def draw(self, seed: SupportsIndex, index: SupportsIndex = 0) -> Task:
        """Task number ``index`` of a seed, which is that of ``ictd task --seed --index``."""
        return Task._of(self._inner.draw(whole("seed", seed), whole("index", index)))

    @property
    def keys(self) -> dict[str, Any]:
        """All of its keys, with their values."""
        found: dict[str, Any] = json.loads(self._inner.json())
        return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set: families do not change")

    def __eq__(self, other: object) -> bool:
        return self._inner == other._inner if isinstance(other, Family) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (_family, (self.name, {("representable" if k == "free" else k): (not v if k == "free" else v) for k, v in self._options.items()}))

    def __repr__(self) -> str:
        return f"<Family: {self._inner.describe()}>"


def _family(name: str, options: dict[str, Any]) -> Family:
    return Family(name, **options)


AnyTasks = str | os.PathLike[str] | Task | Family | TaskSource
"""A family's name, a task file, a task, a family, or a source of one's own."""


def sizes(
    states: SupportsIndex | None,
    features: SupportsIndex | None,
    gamma: float | None,
    free: bool,
    threshold: float | None,
    one_hot: bool,
    unit_norm: bool,
    continuous: bool,
    score_scale: float | None,
) -> dict[str, Any]:
    """The options that are given, by name."""
    options = {
        "states": given("states", states),
        "features": given("features", features),
        "gamma": some_real("gamma", gamma),
        "free": flag("free", free),
        "threshold": some_real("threshold", threshold),
        "one_hot": flag("one_hot", one_hot),
        "unit_norm": flag("unit_norm", unit_norm),
        "continuous": flag("continuous", continuous),
        "score_scale": some_real("score_scale", score_scale),
    }
    return {name: value for name, value in options.items() if value is not None and value is not False}


def source_of(tasks: AnyTasks | None) -> Any:
    """Tasks as the compiled half takes them."""
    if isinstance(tasks, (Task, Family)):
        return tasks._inner
    return os.fspath(tasks) if isinstance(tasks, os.PathLike) else tasks


def task(
    name: str | os.PathLike[str],
    *,
    seed: SupportsIndex = 0,
    index: SupportsIndex = 0,
    states: SupportsIndex | None = None,
    features: SupportsIndex | None = None,
    gamma: float | None = None,
    representable: bool = True,
    threshold: float | None = None,
    one_hot: bool = False,
    unit_norm: bool = False,
    continuous: bool = False,
    score_scale: float | None = None,
) -> Task:
    """A task of a family by name, as ``ictd task`` makes it, or that of a file.

    >>> task("boyan", states=5, seed=1)
    <Task: 5 states, 4 features, gamma 0.9>
    """
    options = sizes(states, features, gamma, not flag("representable", representable), threshold, one_hot, unit_norm, continuous, score_scale)
    return Task._of(_core.draw(os.fspath(name), options, whole("seed", seed), whole("index", index)))
