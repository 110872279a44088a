"""Estimators of values, in the conventions of scikit-learn and without a need of it.

All have the same face: ``fit(X, y=rewards, *, episode=None, terminated=None, truncated=None, time=None, next_state=None)``, ``predict``,
``interval``, ``judgement``, ``score``. Rows are transitions: row i left the state ``X[i]``, was paid ``y[i]`` and went on to the next row of its
episode. A last row without a reward (NaN) says where an episode was cut short; without it the last transition of such an episode is left out,
because nobody knows where it led. Without ``episode`` an episode ends where a flag says so; without flags all rows are one episode, or, where
``next_state`` is given, every row is its own.

States are features (``float`` of shape (n, d), or a frame) or labels (integers or texts in one dimension).
"""

from __future__ import annotations

from typing import Any, Literal

from ictd import _core
from ictd._columns import Floats
from ictd._estimator import Estimator, Judgement, Missing, NotFittedError

__all__ = [
    "KBRL",
    "LSTD",
    "Constant",
    "Judgement",
    "KernelLSTD",
    "LSTDLambda",
    "LinearLSTD",
    "LinearTD",
    "MonteCarlo",
    "NotFittedError",
    "SoftmaxTD",
    "TabularTD",
]

Tuned = float | Literal["tune"]
TunedLayers = int | Literal["tune"]
Scale = Literal["standardize", "none", "unit-norm"]


class _Averaging(Estimator):
    """Estimators whose values are averages, weighted by a kernel."""

    temperature_: float

    def _take(self, fitted: _core.Fitted) -> None:
        temperature, layers, ridge = fitted.settings()
        if temperature is not None:
            self.temperature_ = temperature

    def attention(self, X: Any) -> Floats:
        """The weights that the values of n states rest on: (n, m) over the m states of the log, ``states_``.

        K[i, j] = n_j k(x_i, s_j) / Σ_l n_l k(x_i, s_l) with n the visits; rows sum to 1 for kernels that are normalised by column.
        """
        return self._engine().attention(self._states(X), self._threads)


class SoftmaxTD(_Averaging):
    """Weighted softmax TD: what the layers of a Transformer do in their forward pass.

    v₀ = c, and v_{l+1}(x) = v_l(x) + Σ_s K(x, s)·[Σr_s + γ Σ_s' N_ss' v_l(s') − n_s v_l(s)] / Σ_s n_s K(x, s) over the states s of the log, with n
    their visits, N their transitions, r their rewards and c the constant that fits best. Depth regularises: infinitely many layers give tabular LSTD.

    Args:
        gamma: discount γ; 1 where every episode terminates.
        kernel: "rbf" (exp(−‖x − y‖²/2τ)), "softmax", "elu1", "linear", "tabular".
        temperature: τ, or "tune" for the best on held-out episodes.
        layers: depth, or "tune".
        scale: "standardize" (labels stay as they are), "none" or "unit-norm".
        missing: rows that lack a value: "refuse", "drop", or "mean" for features.
        seed: of held-out parts and resamples. Results are the same for any number of threads.
        threads: one per core where it is None.

    Attributes:
        layers_, temperature_: as chosen. With a single episode nothing can be held out: settings to be tuned are then the median squared distance of
            states as temperature and 15 layers, intervals are all that is possible, and the judgement is to refuse.
        n_features_in_, feature_names_in_: as of scikit-learn.
        states_, visits_, result_: the log's states, their visits, and everything that ``ictd evaluate`` says.

    >>> import ictd, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=300)
    >>> model = ictd.SoftmaxTD(0.0).fit(X, y, episode=np.arange(300), terminated=np.ones(300))
    >>> bool(abs(model.predict([[1.0]])[0] - 1.0) < 0.2), bool(model.judgement())
    (True, True)
    >>> model.interval([[0.0], [1.0]]).shape, model.attention([[1.0]]).shape
    ((2, 2), (1, 300))
    """

    _name = "softmax-td"
    layers_: int

    def __init__(
        self,
        gamma: float,
        kernel: str = "rbf",
        temperature: Tuned = "tune",
        layers: TunedLayers = "tune",
        scale: Scale = "standardize",
        missing: Missing = "refuse",
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.kernel = kernel
        self.temperature: Tuned = temperature
        self.layers: TunedLayers = layers
        self.scale: Scale = scale
        self.missing = missing
        self.seed = seed
        self.threads = threads

    def _take(self, fitted: _core.Fitted) -> None:
        super()._take(fitted)
        layers = fitted.settings()[1]
        if layers is not None:
            self.layers_ = layers


class KBRL(_Averaging):
    """Kernel-based reinforcement learning (Ormoneit and Sen 2002): averages of backups where softmax TD averages errors.

    The fixed point of v(x) = Σ_s K(x, s)·[Σr_s + γ Σ_s' N_ss' v(s')] / Σ_s n_s K(x, s). Parameters as of :class:`SoftmaxTD`.

    >>> import ictd
    >>> model = ictd.KBRL(0.5, temperature=0.1, scale="none").fit(
    ...     [[0.0], [1.0]] * 8, [0.0, 1.0] * 8, episode=[k // 2 for k in range(16)], terminated=[0, 1] * 8)
    >>> model.predict([[0.0], [1.0]]).round(2).tolist()
    [0.5, 1.0]
    """

    _name = "kbrl"

    def __init__(
        self,
        gamma: float,
        kernel: str = "rbf",
        temperature: Tuned = "tune",
        scale: Scale = "standardize",
        missing: Missing = "refuse",
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.kernel = kernel
        self.temperature: Tuned = temperature
        self.scale: Scale = scale
        self.missing = missing
        self.seed = seed
        self.threads = threads


class KernelLSTD(Estimator):
    """Least-squares TD on a kernel, with a ridge: v(x) = c + Σ_s β_s k(x, s) with ridge·n·β_s = Σr_s + γ Σ_s' N_ss' v(s') − n_s v(s).

    Args:
        ridge: as a share of the number n of transitions, or "tune"; 1e-3 where nothing can be held out.
        gamma, kernel, temperature, scale, missing, seed, threads: as of :class:`SoftmaxTD`.

    >>> import ictd
    >>> model = ictd.KernelLSTD(0.5, temperature=0.1, ridge=1e-9, scale="none").fit(
    ...     [[0.0], [1.0]] * 8, [0.0, 1.0] * 8, episode=[k // 2 for k in range(16)], terminated=[0, 1] * 8)
    >>> model.predict([[0.0], [1.0]]).round(3).tolist()
    [0.5, 1.0]
    """

    _name = "kernel-lstd"
    ridge_: float
    temperature_: float

    def __init__(
        self,
        gamma: float,
        kernel: str = "rbf",
        temperature: Tuned = "tune",
        ridge: Tuned = "tune",
        scale: Scale = "standardize",
        missing: Missing = "refuse",
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.kernel = kernel
        self.temperature: Tuned = temperature
        self.ridge: Tuned = ridge
        self.scale: Scale = scale
        self.missing = missing
        self.seed = seed
        self.threads = threads

    def _take(self, fitted: _core.Fitted) -> None:
        temperature, _, ridge = fitted.settings()
        if temperature is not None:
            self.temperature_ = temperature
        if ridge is not None:
            self.ridge_ = ridge


class LinearLSTD(Estimator):
    """Least-squares TD on the features, with a ridge: v(x) = c + ⟨w, x⟩ with Σ_s x_s·[Σr_s + γ Σ_s' N_ss' v(s') − n_s v(s)] = ridge·n·w.

    Args:
        ridge: as a share of the number n of transitions, or "tune"; 1e-3 where nothing can be held out.
        gamma, scale, missing, seed, threads: as of :class:`SoftmaxTD`.

    >>> import ictd
    >>> model = ictd.LinearLSTD(0.5, ridge=0.0).fit(
    ...     [[0.0], [1.0]] * 8, [0.0, 1.0] * 8, episode=[k // 2 for k in range(16)], terminated=[0, 1] * 8)
    >>> model.predict([[0.0], [1.0]]).round(3).tolist()
    [0.5, 0.933]
    """

    _name = "linear-lstd"
    ridge_: float

    def __init__(
        self,
        gamma: float,
        ridge: Tuned = "tune",
        scale: Scale = "standardize",
        missing: Missing = "refuse",
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.ridge: Tuned = ridge
        self.scale: Scale = scale
        self.missing = missing
        self.seed = seed
        self.threads = threads

    def _take(self, fitted: _core.Fitted) -> None:
        ridge = fitted.settings()[2]
        if ridge is not None:
            self.ridge_ = ridge


class _Table(Estimator):
    """Estimators that have nothing to choose."""

    def __init__(self, gamma: float, missing: Missing = "refuse", seed: int = 0, threads: int | None = None) -> None:
        self.gamma = gamma
        self.missing = missing
        self.seed = seed
        self.threads = threads


class LSTD(_Table):
    """Tabular least-squares TD: v(s) = mean of r + γ·v(s') over the visits of s. A state that was never left has the mean.

    Parameters as of :class:`SoftmaxTD`.

    >>> import ictd
    >>> model = ictd.LSTD(0.5).fit(["a", "b"] * 8, [0.0, 1.0] * 8, episode=[k // 2 for k in range(16)], terminated=[0, 1] * 8)
    >>> model.predict(["a", "b"]).tolist()
    [0.5, 1.0]
    """

    _name = "lstd"


class LSTDLambda(Estimator):
    """Tabular least-squares TD with traces: v(s) = mean over the visits of s of the λ-return.

    Args:
        lambda_: decay λ of the traces, in [0, 1].
        gamma, missing, seed, threads: as of :class:`SoftmaxTD`.

    >>> import ictd
    >>> model = ictd.LSTDLambda(0.5, lambda_=0.8).fit(["a", "b"] * 8, [0.0, 1.0] * 8, episode=[k // 2 for k in range(16)], terminated=[0, 1] * 8)
    >>> model.predict(["a", "b"]).round(12).tolist()
    [0.5, 1.0]
    """

    _name = "lstd-lambda"

    def __init__(
        self, gamma: float, lambda_: float = 0.9, missing: Missing = "refuse", seed: int = 0, threads: int | None = None
    ) -> None:
        self.gamma = gamma
        self.lambda_ = lambda_
        self.missing = missing
        self.seed = seed
        self.threads = threads


class _Layered(Estimator):
    """Estimators that have nothing to choose but a depth."""

    layers_: int

    def _take(self, fitted: _core.Fitted) -> None:
        layers = fitted.settings()[1]
        if layers is not None:
            self.layers_ = layers


class TabularTD(_Layered):
    """Tabular TD with expected updates: v(s) ← mean of r + γ·v(s') over the visits of s, for all states at once, as often as there are layers.

    Args:
        layers: number of updates, or "tune"; 15 where nothing can be held out.
        gamma, missing, seed, threads: as of :class:`SoftmaxTD`.

    >>> import ictd
    >>> model = ictd.TabularTD(0.5, layers=64).fit(["a", "b"] * 8, [0.0, 1.0] * 8, episode=[k // 2 for k in range(16)], terminated=[0, 1] * 8)
    >>> model.predict(["a", "b"]).tolist()
    [0.5, 1.0]
    """

    _name = "tabular-td"

    def __init__(
        self, gamma: float, layers: TunedLayers = "tune", missing: Missing = "refuse", seed: int = 0, threads: int | None = None
    ) -> None:
        self.gamma = gamma
        self.layers: TunedLayers = layers
        self.missing = missing
        self.seed = seed
        self.threads = threads


class LinearTD(_Layered):
    """Linear TD: w ← w + (0.1/n) Σ δ·x over the n transitions, from w = 0, as often as there are layers; v(x) = c + ⟨w, x⟩.

    Args:
        layers: number of updates, or "tune"; 15 where nothing can be held out.
        gamma, scale, missing, seed, threads: as of :class:`SoftmaxTD`.

    >>> import ictd
    >>> model = ictd.LinearTD(0.5, layers=2000).fit(
    ...     [[0.0], [1.0]] * 8, [0.0, 1.0] * 8, episode=[k // 2 for k in range(16)], terminated=[0, 1] * 8)
    >>> model.predict([[0.0], [1.0]]).round(3).tolist()
    [0.5, 0.933]
    """

    _name = "linear-td"

    def __init__(
        self,
        gamma: float,
        layers: TunedLayers = "tune",
        scale: Scale = "standardize",
        missing: Missing = "refuse",
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.layers: TunedLayers = layers
        self.scale: Scale = scale
        self.missing = missing
        self.seed = seed
        self.threads = threads


class MonteCarlo(_Table):
    """Every-visit Monte Carlo: v(s) = mean of the discounted rewards that followed the visits of s, to the end of the episode.

    What follows an episode that was cut short is not known, and taken for nothing. Parameters as of :class:`SoftmaxTD`.

    >>> import ictd
    >>> model = ictd.MonteCarlo(0.5).fit(["a", "b"] * 8, [0.0, 1.0] * 8, episode=[k // 2 for k in range(16)], terminated=[0, 1] * 8)
    >>> model.predict(["a", "b"]).tolist()
    [0.5, 1.0]
    """

    _name = "monte-carlo"


class Constant(_Table):
    """One number for all states: c with Σ (r + γ·c·[not terminated] − c) = 0, what any other estimate has to beat.

    Parameters as of :class:`SoftmaxTD`.

    >>> import ictd
    >>> model = ictd.Constant(0.5).fit(["a", "b"] * 8, [0.0, 1.0] * 8, episode=[k // 2 for k in range(16)], terminated=[0, 1] * 8)
    >>> model.predict(["a"]).round(4).tolist()
    [0.6667]
    """

    _name = "constant"
