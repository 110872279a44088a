"""Transformers whose forward pass is temporal-difference learning."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from ictd import _core
from ictd._checks import StepSize, given, real, some_real, step, whole, word
from ictd.blocks import Block, BlockLike, Floats
from ictd.contexts import Context, Flags, flags_of, rows_of
from ictd.errors import InputError
from ictd.results import Result

__all__ = ["Gradient", "Params", "Transformer", "forward"]

Params = tuple[npt.ArrayLike, npt.ArrayLike] | BlockLike | str | os.PathLike[str]
"""V and A, a block, or the path of a checkpoint or of JSON."""


def forward(
    features: npt.ArrayLike,
    rewards: npt.ArrayLike,
    *,
    gamma: float,
    kernel: str = "softmax",
    temperature: float = 1.0,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    block: str = "tsm",
    diagonal_mix: float = 0.0,
    params: Params | None = None,
    queries: npt.ArrayLike | None = None,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    threads: SupportsIndex | None = None,
) -> Floats:
    """The value estimates of every state after every layer, (L + 1, n + 1): a Transformer's forward pass.

    At θ_* a layer is a step of weighted softmax TD, v(s_j) ← v(s_j) + α Σ_k K(x_k, x_j)·(R_k + γ v(s_{k+1}) − v(s_k)) with
    K(x_k, x_j) ∝ exp(⟨x_k, x_j⟩/τ), from v = 0. Nothing is trained.

    ``features`` (n + 1, d) are those of the states of a trajectory in their order, ``rewards`` (n,) are paid on leaving the first n; the
    last state is the query. More of them are asked about by ``queries`` (q, d), whose columns follow. Of several episodes ``episode``
    has a label for every row of features, as for :class:`Context`. A batch of contexts, ``features`` (B, n + 1, d) and ``rewards``
    (B, n), gives (B, L + 1, n + 1), computed in parallel on ``threads`` (one per core).

    ``params`` are V and A, each (d + 3, d + 3) or one per layer (L, d + 3, d + 3), or a block, or the path of a checkpoint. What these
    say themselves, as a kernel, takes the place of arguments that are left as they are, and is refused where an argument says otherwise.

    Raises :class:`~ictd.errors.DivergedError` where values leave the finite range.

    >>> forward([[1.0], [0.5], [1.0]], [1.0, 0.0], gamma=0.9, layers=1).round(6)
    array([[0.      , 0.      , 0.      ],
           [0.622459, 0.562177, 0.622459]])
    """
    rows, flags = (None, None) if episode is None and terminated is None else (rows_of(episode), flags_of(terminated))
    return _core.forward(
        features,
        rewards,
        real("gamma", gamma),
        word("kernel", kernel),
        real("temperature", temperature),
        whole("layers", layers),
        step_size,
        word("block", block),
        real("diagonal_mix", diagonal_mix),
        params,
        queries,
        rows,
        flags,
        given("threads", threads),
    )


class Gradient(NamedTuple):
    """A gradient by what value estimates depend on: V's last row and A's feature block, one of each where all layers share them."""

    value_row: Floats
    """(d + 3,), or (L, d + 3)."""
    score_block: Floats
    """(d, d), or (L, d, d)."""


class Transformer:
    """A Transformer of L layers, which all of its results are of: values, tokens, attention, TD errors, gradients.

    Arguments are those of :func:`forward`.

    >>> context = Context([[1.0], [0.5], [1.0]], [1.0, 0.0])
    >>> transformer = Transformer(0.9, layers=2)
    >>> transformer.values(context).shape, transformer.tokens(context).shape, transformer.attention(context).shape
    ((3, 3), (3, 4, 3), (2, 3, 3))
    """

    def __init__(
        self,
        gamma: float,
        kernel: str = "softmax",
        temperature: float = 1.0,
        layers: SupportsIndex = 15,
        step_size: StepSize = 1.0,
        block: str = "tsm",
        diagonal_mix: float = 0.0,
        params: Params | None = None,
    ) -> None:
        weights, depth = (word("kernel", kernel), real("temperature", temperature)), whole("layers", layers)
        mix = real("diagonal_mix", diagonal_mix)
        self._inner = _core.Transformer(real("gamma", gamma), *weights, depth, step_size, word("block", block), mix, params)

    @property
    def gamma(self) -> float:
        """Discount γ."""
        return self._inner.gamma

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self._inner.kernel

    @property
    def temperature(self) -> float:
        """Temperature τ of the scores."""
        return self._inner.temperature

    @property
    def layers(self) -> int:
        """Depth L."""
        return self._inner.layers

    @property
    def step_size(self) -> float | tuple[float, ...]:
        """Step size α of all layers, or of each."""
        sizes = self._inner.step_sizes
        return sizes[0] if len(sizes) == 1 else tuple(sizes)

    @property
    def block(self) -> str:
        """How memory rows are written: ``tsm`` (one head and temporal shift) or ``dual`` (two heads)."""
        return self._inner.block

    @property
    def diagonal_mix(self) -> float:
        """Diagonal mixing ρ."""
        return self._inner.diagonal_mix

    @property
    def V(self) -> Floats | None:
        """(d + 3, d + 3), or (L, d + 3, d + 3) where layers have their own; ``None`` at θ_*, which has no sizes of its own."""
        return self._matrices(0)

    @property
    def A(self) -> Floats | None:
        """As :attr:`V`, the score matrix."""
        return self._matrices(1)

    def _matrices(self, which: int) -> Floats | None:
        shape = self._inner.shape()
        if shape is None:
            return None
        features, tied = shape
        found = [self._inner.params(layer, features)[which] for layer in range(1 if tied else self.layers)]
        return found[0] if tied else np.stack(found)

    def as_block(self, features: SupportsIndex | None = None) -> Block:
        """The same as arrays, for so many features where there are no parameters that say it."""
        V, A = self.V, self.A
        if V is None or A is None:
            if features is None:
                raise InputError("features: missing, expected the feature dimension that θ_* is written out for")
            V, A = self._inner.params(0, whole("features", features))
        elif features is not None and V.shape[-1] != whole("features", features) + 3:
            raise InputError(f"features is {features}, expected {V.shape[-1] - 3}, as the parameters have")
        return Block(V, A, self.gamma, self.layers, self.kernel, self.temperature, self.step_size, self.block, self.diagonal_mix)

    def values(self, context: Context, *, threads: SupportsIndex | None = None) -> Floats:
        """(L + 1, columns): the value estimates v_l of every column before the first and after every layer."""
        return self._inner.values(_of(context), given("threads", threads))

    def targets(self, context: Context, *, threads: SupportsIndex | None = None) -> Floats:
        """(L + 1, columns): the target memory, γ·v_l(successor) for sources and 0 elsewhere."""
        return self._inner.targets(_of(context), given("threads", threads))

    def td_errors(self, context: Context, *, threads: SupportsIndex | None = None) -> Floats:
        """(L + 1, n): δ_k = R_k + γ·v_l(s_{k+1}) − v_l(s_k) of every transition, before the first and after every layer."""
        return self._inner.td_errors(_of(context), given("threads", threads))

    def tokens(self, context: Context, *, threads: SupportsIndex | None = None) -> Floats:
        """(L + 1, d + 3, columns): the token matrices Z_0, …, Z_L.

        Rows are the features, the reward, the target memory γ·v(successor) and the current memory v.
        """
        return self._inner.tokens(_of(context), given("threads", threads))

    def attention(self, context: Context, *, threads: SupportsIndex | None = None) -> Floats:
        """(L, columns, columns): the attention matrices K̃, entry (i, j) being the weight of source i for column j.

        Rows of columns that are not sources are 0, and so are columns of terminal states. Where all layers have the same the result is a
        view that cannot be written to.
        """
        found = self._inner.attention(_of(context), given("threads", threads))
        if len(found) == self.layers:
            return found
        columns = context.num_columns
        return np.broadcast_to(found[0], (self.layers, columns, columns)) if len(found) else np.zeros((0, columns, columns))

    def gradient(
        self,
        context: Context,
        layer: SupportsIndex | None = None,
        weights: npt.ArrayLike | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> Gradient:
        """The gradient of Σ_j weights_j·v_l(s_j) after ``layer`` layers (all) by V's last row and A's feature block.

        ``weights`` (columns,) are 1 unless they are said. The others of V and A must leave tokens alone: scores of features, a V that
        writes memory rows.

        >>> context = Context([[1.0], [0.5], [1.0]], [1.0, 0.0])
        >>> Transformer(0.9, layers=3).gradient(context).score_block.shape
        (1, 1)
        """
        inner, depth = _of(context), self.layers if layer is None else whole("layer", layer)
        direction = np.ones(context.num_columns) if weights is None else weights
        rows, blocks = self._inner.gradient(inner, depth, direction, given("threads", threads))
        shape = self._inner.shape()
        return Gradient(rows, blocks) if shape is not None and not shape[1] else Gradient(rows[0], blocks[0])

    def report(
        self,
        context: Context,
        *,
        fixed_point: bool = False,
        tokens: bool = False,
        attention: bool = False,
        last: bool = False,
        precision: str | None = None,
        tolerance: float | None = None,
        memory: float | None = None,
        threads: SupportsIndex | None = None,
        callback: Callable[..., object] | None = None,
    ) -> Result:
        """What ``ictd forward --json`` gives: values, targets, and a judgement on whether to use them.

        >>> report = Transformer(0.9).report(Context([[1.0], [0.5], [1.0]], [1.0, 0.0]))
        >>> report["judgement"]
        'caution'
        """
        flags = (tokens, attention, last, fixed_point)
        limits = (precision, some_real("tolerance", tolerance), some_real("memory", memory))
        return Result(self._inner.report(_of(context), *limits, flags, given("threads", threads), callback))

    def __reduce__(self) -> tuple[Any, ...]:
        V, A = self.V, self.A
        params = None if V is None or A is None else (V, A)
        words = (self.gamma, self.kernel, self.temperature, self.layers, step(self.step_size), self.block, self.diagonal_mix)
        return (Transformer, (*words, params))

    def __repr__(self) -> str:
        shape = self._inner.shape()
        params = "θ_*" if shape is None else f"{shape[0]} features, {'one V and A' if shape[1] else 'V and A per layer'}"
        return f"<Transformer: {self.layers} layers, {params}, {self.block}, {self.kernel}, gamma {self.gamma}>"


def _of(context: Context) -> _core.Context:
    if not isinstance(context, Context):
        from ictd.errors import InputTypeError

        raise InputTypeError(f"context is of type {type(context).__name__}, expected ictd.Context")
    return context._inner
