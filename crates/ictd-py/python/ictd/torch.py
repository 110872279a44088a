"""Blocks as modules of PyTorch, which is imported when it is asked for."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import TYPE_CHECKING, Any, SupportsIndex

from ictd.blocks import BlockLike, as_block
from ictd.constructions import Circuit, prompt_of
from ictd.errors import InputError
from ictd.transformers import Transformer

if TYPE_CHECKING:
    from ictd.torch_block import AttentionBlock

__all__ = ["to_torch"]


def to_torch(block: BlockLike | Circuit | Transformer, *, features: SupportsIndex | None = None, dtype: Any = None) -> AttentionBlock:
    """The layers of a block as a ``torch.nn.Module`` with parameters ``V`` and ``A``, which can be probed, hooked and trained.

    ``block`` is a :class:`~ictd.Block`, a checkpoint, a circuit, or a Transformer, which at θ_* is written out for so many ``features``.
    Numbers are of double precision unless ``dtype`` says otherwise; with it values and attention are the library's to rounding. See
    :class:`~ictd.torch_block.AttentionBlock` on how it is called.

    Raises ImportError where PyTorch is not installed.

    >>> import ictd
    >>> module = to_torch(ictd.Transformer(0.9, layers=1), features=1)
    >>> module([[1.0], [0.5], [1.0]], [1.0, 0.0]).detach().numpy().round(6)
    array([[0.      , 0.      , 0.      ],
           [0.622459, 0.562177, 0.622459]])
    """
    if importlib.util.find_spec("torch") is None:
        raise ImportError("to_torch needs PyTorch, which is not installed: pip install torch")
    from ictd.torch_block import AttentionBlock

    if isinstance(block, Circuit):
        # A function of this package, so that the module can be saved without the circuit.
        prompt = partial(prompt_of, block["name"], block["gamma"])
        return AttentionBlock(block.block, prompt=prompt, value_sign=block["value_sign"], dtype=dtype)
    if isinstance(block, Transformer):
        return AttentionBlock(block.as_block(features), dtype=dtype)
    if features is not None:
        raise InputError("features: expected beside a Transformer alone, blocks have their own")
    return AttentionBlock(as_block(block), dtype=dtype)
