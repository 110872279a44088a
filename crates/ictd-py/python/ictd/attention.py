"""Kernels: how much a source counts for a column."""

from __future__ import annotations

import numpy.typing as npt

from ictd import _core
from ictd._checks import real, word
from ictd.blocks import Floats
from ictd.errors import InputError

__all__ = ["kernel_weights", "kernels", "similarities"]

kernels: tuple[str, ...] = tuple(_core.kernels())
"""Names of the kernels.

========  ===============================  ===============================================
name      unnormalised weight              normalised
========  ===============================  ===============================================
softmax   exp(G/τ)                         by column
relu      max(G, 0)                        by column; a column of zeros stays one
elu1      G/τ + 1 for G > 0, else exp(G/τ) by column
rbf       exp(-‖x_i - x_j‖²/(2τ))          by column
linear    G/τ                              divided by n
tabular   1 where features are the same    by column
========  ===============================  ===============================================

with scores G = x_iᵀ A x_j.
"""


def similarities(
    features: npt.ArrayLike,
    queries: npt.ArrayLike | None = None,
    *,
    kernel: str = "softmax",
    A: npt.ArrayLike | None = None,
) -> Floats:
    """(n, n + q): what a kernel looks at for every source and every column, which are the sources and then the queries.

    Inner products x_iᵀ A x_j (softmax, relu, elu1, linear), (x_i − x_j)ᵀ A (x_i − x_j) (rbf), or 1 where features are the same, else 0
    (tabular). ``features`` (n, d), ``queries`` (q, d), ``A`` (d, d), the identity unless it is said.

    >>> similarities([[1.0, 0.0], [1.0, 1.0]], [[0.0, 2.0]])
    array([[1., 1., 0.],
           [1., 2., 2.]])
    """
    return _core.similarities(features, queries, word("kernel", kernel), A)


def kernel_weights(
    features: npt.ArrayLike | None = None,
    queries: npt.ArrayLike | None = None,
    *,
    scores: npt.ArrayLike | None = None,
    kernel: str = "softmax",
    temperature: float = 1.0,
    diagonal_mix: float = 0.0,
    A: npt.ArrayLike | None = None,
) -> Floats:
    """(n, n + q): attention weights, entry (i, j) being that of source i for column j.

    Columns are the sources and then the queries, as of :func:`similarities`; or ``scores`` (n, columns) are these similarities. With
    diagonal mixing ρ weights are (1 − ρ)·K + ρ·[i = j], where queries have no entry i = j.

    >>> kernel_weights(scores=[[0.0], [1.0986122886681098]]).round(6)
    array([[0.25],
           [0.75]])
    """
    if (features is None) == (scores is None) or scores is not None and (queries is not None or A is not None):
        raise InputError("features: expected either features, with queries and A, or scores")
    if scores is None and features is not None:
        scores = similarities(features, queries, kernel=kernel, A=A)
    if scores is None:
        raise InputError("scores: missing")
    return _core.kernel_weights(scores, word("kernel", kernel), real("temperature", temperature), real("diagonal_mix", diagonal_mix))
