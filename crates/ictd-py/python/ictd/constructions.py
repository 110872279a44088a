"""Other algorithms as attention, and circuits: blocks whose algorithm is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from ictd import _core
from ictd._checks import StepSize, flag, given, some_real, whole, word
from ictd.blocks import Block, Floats
from ictd.contexts import Context, as_context
from ictd.results import Result
from ictd.transformers import Params

__all__ = ["Circuit", "algorithms", "circuit", "circuits", "construct"]

algorithms: tuple[str, ...] = tuple(_core.algorithms())
"""Names of the constructions: what a layer of linear attention can be a step of."""

circuits: tuple[str, ...] = tuple(_core.circuits())
"""Names of the circuits; ``trained`` is what a checkpoint holds."""


def construct(
    algorithm: str,
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    gamma: float | None = None,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    lam: float | None = None,
    tokens: bool = False,
    threads: SupportsIndex | None = None,
    callback: Callable[..., object] | None = None,
) -> Result:
    """Runs another algorithm by linear attention, as ``ictd forward --construction`` does: the values of the last row of one trajectory.

    A layer is Z ← Z + (α/n)·P Z M Zᵀ Q Z on columns (x_k, γ x_{k+1}, R_k), or that of its construction; its value of the query is that of
    the algorithm's iteration. ``"query_values"`` has L + 1 of them; ``"spectral_radius"`` and ``"limit"`` say where layers lead, and with
    ``tokens`` there are ``"tokens"`` (L + 1, rows, n + 1) and ``"row_names"``. ``gamma`` is 0.9 unless it is said, 1 for average-reward;
    ``lam`` is that of td-lambda, 0.5 unless it is said.

    >>> construct("td", [[1.0], [0.5], [1.0]], [1.0, 0.0], layers=2)["query_values"]
    [0.0, 0.5, 0.9125]
    """
    context = as_context(features, rewards)._inner
    how = (some_real("gamma", gamma), given("layers", layers), step_size, some_real("lam", lam))
    return Result(_core.construct(word("algorithm", algorithm), context, *how, flag("tokens", tokens), given("threads", threads), callback))


class Circuit(Result):
    """A block whose algorithm is known, or a trained one. Its keys are those of the card; :meth:`save` writes the files of ``ictd circuit``.

    A pickle keeps the card and the matrices, of which it is a circuit again: ``block`` and ``prompt`` are there, files and text are not.

    >>> found = circuit("td", features=2)
    >>> found["algorithm"], sorted(found.arrays)
    ('weighted softmax TD', ['A', 'V'])
    """

    arrays: dict[str, Floats]
    """The matrices by name: V and A (``layers.0.V`` and so on where layers have their own), or P and Q of linear attention."""

    def __init__(self, report: _core.Report, arrays: dict[str, Floats]) -> None:
        super().__init__(report)
        self.arrays = arrays

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (dict(self), self.arrays))

    def __repr__(self) -> str:
        return self.text() if "_report" in self.__dict__ else f"<circuit {self['name']}>"

    @property
    def card(self) -> dict[str, Any]:
        """What it is and what it computes, with an example, as a plain dictionary."""
        return dict(self)

    @property
    def block(self) -> Block:
        """The same as a block; ``V`` and ``A`` are P and Q where attention is linear."""
        names = self["matrices"]
        stacks = [
            self.arrays[name] if self["tied"] else np.stack([self.arrays[f"layers.{layer}.{name}"] for layer in range(self["layers"])])
            for name in names
        ]
        sizes = self["step_sizes"]
        words = (self["gamma"], self["layers"], self["kernel"], self["temperature"])
        step_size = sizes[0] if len(set(sizes)) == 1 else tuple(sizes)
        return Block(stacks[0], stacks[1], *words, step_size, self["block"], self["diagonal_mix"])

    def prompt(self, features: npt.ArrayLike, rewards: npt.ArrayLike) -> Floats:
        """(rows, n + 1): the tokens that the first layer is given for a trajectory whose last state is the query."""
        return prompt_of(self["name"], self["gamma"], features, rewards)


def _again(card: dict[str, Any], arrays: dict[str, Floats]) -> Circuit:
    """A circuit of its card and its matrices."""
    made = Circuit.__new__(Circuit)
    dict.update(made, card)
    made.arrays = arrays
    return made


def prompt_of(name: str, gamma: float, features: npt.ArrayLike, rewards: npt.ArrayLike) -> Floats:
    """The tokens that the first layer of a circuit of that name is given."""
    context = as_context(features, rewards)
    linear = {"td-linear": "td", "lstd": "td", "residual-gradient": "residual-gradient", "monte-carlo": "monte-carlo"}
    if name in linear:
        return _core.construction_prompt(linear[name], context._inner, gamma)
    plain = _core.Transformer(gamma, "softmax", 1.0, 0, 1.0, "tsm", 0.0, None)
    found: Floats = plain.tokens(context._inner, None)[0]
    return found


def circuit(
    name: str,
    *,
    features: SupportsIndex | None = None,
    layers: SupportsIndex | None = None,
    gamma: float | None = None,
    step_size: float | None = None,
    params: Params | None = None,
    seed: SupportsIndex = 0,
) -> Circuit:
    """A circuit by name, as ``ictd circuit`` makes it: td, mirror, td-linear, residual-gradient, monte-carlo, lstd, or trained.

    ``params`` are those of a trained circuit. What is not said is the parameters', or 4 features, 4 layers (lstd: 200), discount 0.9, step
    size 1 (lstd: 2). ``seed`` is that of the example on the card.

    >>> circuit("td-linear", features=1, layers=2)["formula"]
    'w += (α/n) Σ_i (r_i + γ w·x_{i+1} − w·x_i) x_i, v = w·x'
    """
    sizes = (given("features", features), given("layers", layers), some_real("gamma", gamma), some_real("step_size", step_size))
    report, arrays = _core.circuit(word("circuit", name), *sizes, params, whole("seed", seed))
    return Circuit(report, dict(arrays))
