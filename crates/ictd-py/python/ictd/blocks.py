"""Blocks: what the layers of a Transformer are made of, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ictd import _core
from ictd._checks import StepSize, floats, step, whole
from ictd.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from ictd.transformers import Transformer

__all__ = ["Block", "BlockLike", "Floats", "as_block"]

Floats = npt.NDArray[np.float64]


class BlockLike(Protocol):
    """What says everything about the layers of a Transformer: a :class:`Block`, a checkpoint, or anything with these attributes."""

    @property
    def V(self) -> npt.ArrayLike: ...
    @property
    def A(self) -> npt.ArrayLike: ...
    @property
    def kernel(self) -> str: ...
    @property
    def temperature(self) -> float: ...
    @property
    def gamma(self) -> float: ...
    @property
    def layers(self) -> int: ...
    @property
    def step_size(self) -> StepSize: ...
    @property
    def block(self) -> str: ...
    @property
    def diagonal_mix(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Block:
    """The parameters of all layers, and what else their forward pass depends on.

    ``V`` and ``A`` have shape (d + 3, d + 3) where all layers share them, else (L, d + 3, d + 3). A layer is
    Z ← Z + α V Z K with K the kernel's weights of the scores z_iᵀ A z_j / τ, followed by what the block does to the memory rows.

    >>> block = Block.theta_star(2, gamma=0.9, layers=3)
    >>> block.V[-1]
    array([ 0.,  0.,  1.,  1., -1.])
    >>> block.tied, block.features
    (True, 2)
    """

    V: Floats
    A: Floats
    gamma: float
    layers: int
    kernel: str = "softmax"
    temperature: float = 1.0
    step_size: float | tuple[float, ...] = 1.0
    block: str = "tsm"
    diagonal_mix: float = 0.0

    def __post_init__(self) -> None:
        for name in ("V", "A"):
            array = floats(name, getattr(self, name))
            if array.ndim not in (2, 3) or array.shape[-1] != array.shape[-2]:
                raise InputError(f"{name} has shape {array.shape}, expected square matrices: (rows, rows) or (layers, rows, rows)")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "layers", whole("layers", self.layers))
        if self.V.shape[:-2] != self.A.shape[:-2] or self.V.ndim == 3 and len(self.V) != self.layers:
            raise InputError(f"V has shape {self.V.shape}, A {self.A.shape}, expected as many of both as layers, which are {self.layers}")
        object.__setattr__(self, "step_size", step(self.step_size))

    @classmethod
    def theta_star(cls, features: int, **others: Any) -> Block:
        """θ_*, whose forward pass is weighted softmax TD: V's last row is [0_d, 1, 1, -1], A is diag(I_d, 0)."""
        V, A = _core.Transformer(0.0, "softmax", 1.0, 1, 1.0, "tsm", 0.0, None).params(0, features)
        return cls(V, A, **others)

    @classmethod
    def mirror(cls, features: int, **others: Any) -> Block:
        """The mirror image of θ_*, both matrices negated: the same on reflected transitions (-x, -R, -x')."""
        plain = cls.theta_star(features, gamma=0.0, layers=1)
        return cls(0.0 - plain.V, 0.0 - plain.A, **others)

    @property
    def tied(self) -> bool:
        """Whether all layers share V and A."""
        return self.V.ndim == 2

    @property
    def features(self) -> int:
        """Feature dimension d."""
        return int(self.V.shape[-1]) - 3

    def transformer(self) -> Transformer:
        """The Transformer with these layers."""
        from ictd.transformers import Transformer

        return Transformer(self.gamma, params=self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Block):
            return NotImplemented
        arrays = np.array_equal(self.V, other.V) and np.array_equal(self.A, other.A)
        return arrays and self._words() == other._words()

    __hash__ = None  # type: ignore[assignment]

    def _words(self) -> tuple[Any, ...]:
        return (self.gamma, self.layers, self.kernel, self.temperature, self.step_size, self.block, self.diagonal_mix)

    def __repr__(self) -> str:
        tied = "one V and A" if self.tied else "V and A per layer"
        return f"<Block: {self.layers} layers, {self.features} features, {tied}, {self.block}, {self.kernel}, gamma {self.gamma}>"


def as_block(given: BlockLike) -> Block:
    """A block of anything that has its attributes."""
    if isinstance(given, Block):
        return given
    names = ("gamma", "layers", "kernel", "temperature", "step_size", "block", "diagonal_mix")
    missing = [name for name in ("V", "A", *names) if not hasattr(given, name)]
    if missing:
        raise InputTypeError(f"block is of type {type(given).__name__} without {', '.join(missing)}, expected a Block, a Transformer or a checkpoint")
    arrays = (floats("V", given.V), floats("A", given.A))
    return Block(*arrays, **{name: getattr(given, name) for name in names})
