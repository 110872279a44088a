"""Temporal-difference learning written as algorithms, without Transformers: what the forward pass is compared with.

Every function takes a :class:`~ictd.Context`, or ``features`` and ``rewards`` as :class:`~ictd.Context` does, and returns (L + 1, columns):
the value estimates of every column before the first and after every one of L iterations, ``layers`` of them. ``step_size`` is one number,
or one for each iteration.

>>> weighted_softmax_td([[1.0], [0.5], [1.0]], [1.0, 0.0], gamma=0.9, layers=1).round(6)
array([[0.      , 0.      , 0.      ],
       [0.622459, 0.562177, 0.622459]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsIndex

import numpy.typing as npt

from ictd import _core
from ictd._checks import StepSize, given, real, whole, word
from ictd.blocks import Floats
from ictd.contexts import Context, Flags, as_context

__all__ = [
    "average_reward_td",
    "lambda_td",
    "least_squares_td",
    "linear_td",
    "monte_carlo_regression",
    "nonparametric_td",
    "reflected_td",
    "residual_gradient_td",
    "tabular_td",
    "weighted_softmax_td",
]


def _run(
    name: str,
    context: Context,
    gamma: float,
    layers: SupportsIndex,
    step_size: StepSize,
    threads: SupportsIndex | None,
    *,
    kernel: str = "softmax",
    temperature: float = 1.0,
    diagonal_mix: float = 0.0,
    lam: float = 0.0,
) -> Floats:
    sizes = (real("gamma", gamma), whole("layers", layers), step_size)
    weights = (real("temperature", temperature), real("diagonal_mix", diagonal_mix), real("lam", lam))
    return _core.td(name, context._inner, *sizes, word("kernel", kernel), *weights, given("threads", threads))


def weighted_softmax_td(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    gamma: float,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    kernel: str = "softmax",
    temperature: float = 1.0,
    diagonal_mix: float = 0.0,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    queries: npt.ArrayLike | None = None,
    threads: SupportsIndex | None = None,
) -> Floats:
    """Weighted softmax TD: v(s_j) ← v(s_j) + α Σ_k δ_k K(x_k, x_j), δ_k = R_k + γ v(s_{k+1}) − v(s_k).

    Theorem 1: the same as :func:`ictd.forward` at θ_*.

    >>> weighted_softmax_td([[1.0], [0.5], [1.0]], [1.0, 0.0], gamma=0.9, layers=1).round(6)
    array([[0.      , 0.      , 0.      ],
           [0.622459, 0.562177, 0.622459]])
    """
    context = as_context(features, rewards, episode, terminated, queries)
    return _run(
        "weighted_softmax",
        context,
        gamma,
        layers,
        step_size,
        threads,
        kernel=kernel,
        temperature=temperature,
        diagonal_mix=diagonal_mix,
    )


def reflected_td(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    gamma: float,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    temperature: float = 1.0,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    queries: npt.ArrayLike | None = None,
    threads: SupportsIndex | None = None,
) -> Floats:
    """Softmax TD on reflected transitions (−x, −R, −x'), a reflected state being worth −v: what the mirror block computes.

    v(s_j) ← v(s_j) + α Σ_k K(−x_k, x_j)·(−R_k − γ v(s_{k+1}) + v(s_k)).

    >>> reflected_td([[1.0], [0.5], [1.0]], [1.0, 0.0], gamma=0.9, layers=1).round(6)
    array([[ 0.      ,  0.      ,  0.      ],
           [-0.377541, -0.437823, -0.377541]])
    """
    context = as_context(features, rewards, episode, terminated, queries)
    return _run("reflected", context, gamma, layers, step_size, threads, temperature=temperature)


def tabular_td(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    gamma: float,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    queries: npt.ArrayLike | None = None,
    threads: SupportsIndex | None = None,
) -> Floats:
    """Expected tabular TD on the empirical model: v(s) ← v(s) + α (r̂(s) + γ Σ p̂(s'|s) v(s') − v(s)) for every state that was left.

    States are the same where their features are.

    >>> tabular_td([[1.0], [0.5], [1.0]], [1.0, 0.0], gamma=0.9, layers=1).round(6)
    array([[0., 0., 0.],
           [1., 0., 1.]])
    """
    context = as_context(features, rewards, episode, terminated, queries)
    return _run("tabular", context, gamma, layers, step_size, threads)


def linear_td(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    gamma: float,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    queries: npt.ArrayLike | None = None,
    threads: SupportsIndex | None = None,
) -> Floats:
    """Batch linear TD: w ← w + (α/n) Σ_k δ_k x_k and v(s) = ⟨w, x(s)⟩, from w = 0.

    >>> linear_td([[1.0], [0.5], [1.0]], [1.0, 0.0], gamma=0.9, layers=1).round(6)
    array([[0.  , 0.  , 0.  ],
           [0.5 , 0.25, 0.5 ]])
    """
    context = as_context(features, rewards, episode, terminated, queries)
    return _run("linear", context, gamma, layers, step_size, threads)


def lambda_td(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    gamma: float,
    lam: float = 0.5,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    queries: npt.ArrayLike | None = None,
    threads: SupportsIndex | None = None,
) -> Floats:
    """Batch linear TD(λ): w ← w + (α/n) Σ_k δ_k e_k with traces e_k = λ e_{k−1} + x_k, which start anew with every episode.

    Traces decay by λ, not by γλ (arXiv 2405.13861).

    >>> lambda_td([[1.0], [0.5], [1.0]], [1.0, 0.0], gamma=0.9, lam=0.5, layers=1).round(6)
    array([[0.  , 0.  , 0.  ],
           [0.5 , 0.25, 0.5 ]])
    """
    context = as_context(features, rewards, episode, terminated, queries)
    return _run("lambda", context, gamma, layers, step_size, threads, lam=lam)


def residual_gradient_td(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    gamma: float,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    queries: npt.ArrayLike | None = None,
    threads: SupportsIndex | None = None,
) -> Floats:
    """The batch residual gradient: w ← w + (α/n) Σ_k δ_k (x_k − γ x_{k+1}).

    >>> residual_gradient_td([[1.0], [0.5], [1.0]], [1.0, 0.0], gamma=0.9, layers=1).round(6)
    array([[0.    , 0.    , 0.    ],
           [0.275 , 0.1375, 0.275 ]])
    """
    context = as_context(features, rewards, episode, terminated, queries)
    return _run("residual_gradient", context, gamma, layers, step_size, threads)


def average_reward_td(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    queries: npt.ArrayLike | None = None,
    threads: SupportsIndex | None = None,
) -> Floats:
    """Batch average-reward TD: w ← w + (α/n) Σ_k (R_k − R̄_k + v(s_{k+1}) − v(s_k)) x_k, R̄_k being the mean of the first k rewards.

    >>> average_reward_td([[1.0], [0.5], [1.0]], [1.0, 0.0], layers=1).round(6)
    array([[ 0.    ,  0.    ,  0.    ],
           [-0.125 , -0.0625, -0.125 ]])
    """
    context = as_context(features, rewards, episode, terminated, queries)
    return _run("average_reward", context, 0.0, layers, step_size, threads)


def monte_carlo_regression(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    gamma: float,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    queries: npt.ArrayLike | None = None,
    threads: SupportsIndex | None = None,
) -> Floats:
    """Regression on returns: w ← w + (α/n) Σ_k (G_k − ⟨w, x_k⟩) x_k with G_k = R_k + γ G_{k+1} to the end of the episode.

    >>> monte_carlo_regression([[1.0], [0.5], [1.0]], [1.0, 0.0], gamma=0.9, layers=1).round(6)
    array([[0.  , 0.  , 0.  ],
           [0.5 , 0.25, 0.5 ]])
    """
    context = as_context(features, rewards, episode, terminated, queries)
    return _run("monte_carlo", context, gamma, layers, step_size, threads)


def nonparametric_td(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    kappa: Callable[[Floats, Floats], float],
    gamma: float,
    layers: SupportsIndex = 15,
    step_size: StepSize = 1.0,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    queries: npt.ArrayLike | None = None,
) -> Floats:
    """Normalised non-parametric TD: v(y) ← v(y) + α Σ_k δ_k κ(x_k, y)/Σ_k κ(x_k, y) for a similarity κ(x, y) > 0 of one's own.

    ``kappa`` is called for every pair in every iteration, with two arrays of d numbers, and returns a positive number, or 0 for sources that
    do not count.

    >>> near = lambda x, y: 1 / (1 + (x - y) @ (x - y))
    >>> nonparametric_td([[1.0], [0.5], [1.0]], [1.0, 0.0], kappa=near, gamma=0.9, layers=1).round(6)
    array([[0.      , 0.      , 0.      ],
           [0.555556, 0.444444, 0.555556]])
    """
    context = as_context(features, rewards, episode, terminated, queries)
    return _core.nonparametric_td(context._inner, kappa, real("gamma", gamma), whole("layers", layers), step_size)


def least_squares_td(
    features: Context | npt.ArrayLike,
    rewards: npt.ArrayLike | None = None,
    *,
    gamma: float,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
) -> Floats:
    """(d,): the weights that :func:`linear_td` comes to, if it does: Σ_k x_k (x_k − γ x_{k+1})ᵀ w = Σ_k R_k x_k.

    >>> least_squares_td([[1.0], [0.5], [1.0]], [1.0, 0.0], gamma=0.9)
    array([2.85714286])
    """
    return _core.least_squares(as_context(features, rewards, episode, terminated)._inner, real("gamma", gamma))
