"""What theory says about tasks and contexts: certificates, bounds, NEU, regimes, lemmas, and the experiments that need no training.

Every function is a command of ``ictd`` with the same options, dashes being underscores, and returns its ``--json`` as a
:class:`~ictd.Result`, which has its text and its figures too. ``task`` is the name of a family, a task file, a :class:`~ictd.Task`, a
:class:`~ictd.Family`, or any object with a method ``draw(seed, index)`` (:class:`~ictd.TaskSource`); ``states``, ``features``, ``gamma``,
``free``, ``threshold``, ``one_hot``, ``unit_norm``, ``continuous`` and ``score_scale`` are what :class:`~ictd.Family` says of them. ``threads``
is one per core unless it is said, and ``callback`` is told how far the work is: ``callback(name=…, done=…, total=…, unit=…, seconds=…)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from ictd import _core
from ictd._checks import flag, given, listed, real, some_real, whole, word
from ictd.contexts import Context, Flags, as_context
from ictd.errors import InputError
from ictd.results import Result
from ictd.tasks import AnyTasks, sizes, source_of
from ictd.transformers import Params

__all__ = ["bound", "certify", "lemmas", "msve", "neu", "regimes", "verify"]

Callback = Callable[..., object]
Whole = SupportsIndex
Wholes = Iterable[SupportsIndex] | SupportsIndex


def certify(
    features: Context | npt.ArrayLike | None = None,
    rewards: npt.ArrayLike | None = None,
    *,
    gamma: float | None = None,
    kernel: str | None = None,
    temperature: float | None = None,
    step_size: float | None = None,
    layers: Whole | None = None,
    tolerance: float | None = None,
    params: Params | None = None,
    episode: npt.ArrayLike | None = None,
    terminated: Flags | None = None,
    task: AnyTasks | None = None,
    n: Whole | None = None,
    index: Whole | None = None,
    tasks: Whole | None = None,
    states: Whole | None = None,
    free: bool = False,
    threshold: float | None = None,
    one_hot: bool = False,
    unit_norm: bool = False,
    continuous: bool = False,
    score_scale: float | None = None,
    attention: bool = False,
    seed: Whole = 0,
    threads: Whole | None = None,
    callback: Callback | None = None,
) -> Result:
    """Whether layers converge with depth on a context or a task, and what to change if not: ``ictd certify``.

    Of ``features`` and ``rewards``, as for :func:`ictd.forward`, or of a context; without them of a task, the paper's unless ``task`` says
    another: in the limit of long contexts, of a sampled context of ``n`` transitions, or counted over the first ``tasks`` tasks. With a task a
    whole number as ``features`` is the feature dimension.

    ``"status"`` is ``certified`` where every layer contracts, ``estimated`` where errors vanish in the long run by the numbers, else
    ``refused`` or ``undecided``; that the limit is right is not certified. Errors are multiplied by I − α(M − γP) per layer, with M and P the
    kernel's averages over visited states: ``"contraction"`` has its norm and its spectral radius.

    >>> certify([[1.0], [0.5], [1.0]], [1.0, 0.0])["status"]
    'estimated'
    """
    number, context = None, None
    if isinstance(features, (int, np.integer)) and rewards is None:
        number = whole("features", features)
    elif features is not None or rewards is not None:
        if features is None:
            raise InputError("features: missing")
        context = as_context(features, rewards, episode, terminated)._inner
    if context is None and (episode is not None or terminated is not None):
        raise InputError("features: missing, expected beside episode and terminated")
    options = sizes(states, number, gamma, free, threshold, one_hot, unit_norm, continuous, score_scale)
    sizes_of = (some_real("temperature", temperature), some_real("step_size", step_size), given("layers", layers))
    layer = (None if kernel is None else word("kernel", kernel), *sizes_of, some_real("tolerance", tolerance), params, flag("attention", attention))
    which = (given("tasks", tasks), given("n", n), given("index", index), whole("seed", seed))
    return Result(_core.certify(context, source_of(task), options, *layer, *which, given("threads", threads), callback))


def bound(
    task: AnyTasks | None = None,
    *,
    index: Whole | None = None,
    lengths: Wholes | None = None,
    contexts: Whole = 1000,
    delta: float = 0.1,
    states: Whole | None = None,
    features: Whole | None = None,
    gamma: float | None = None,
    free: bool = False,
    threshold: float | None = None,
    one_hot: bool = False,
    unit_norm: bool = False,
    continuous: bool = False,
    score_scale: float | None = None,
    seed: Whole = 0,
    threads: Whole | None = None,
    callback: Callback | None = None,
) -> Result:
    """Lemmas 4 to 7 and Theorem 2 with all constants, beside sampled contexts: ``ictd bound``.

    With C = min_s M(s, s) − (1 + γ)/2 (``margin``), the chain's mixing c_λ = (1 + λ)/(1 − λ) and C_x the largest ‖x(s)‖, Lemma 4 has
    ‖M̂ − M‖∞ ≤ |S|·√(c_λ/2)·2·exp(4·C_x²)·√(log(2|S|/(μ_min δ))/n), Lemma 6 (with λ of the chain of pairs)
    ‖T̂(v) − v‖∞ ≤ 2γ‖v‖∞·√(2·c_λ)·|S|·exp(2·C_x²)·√(log(4|S|/(μ_pair δ))/n) = b, and Theorem 2 ‖v_L − v‖∞ ≤ (1 − C)^L·‖v‖∞ + b/C.

    Statements hold with probability 1 − ``delta``. Without a task, an index or lengths three settings are compared. ``"results"`` has one
    report per setting.

    >>> found = bound("coin", lengths=[100], contexts=10, states=2, one_hot=True)
    >>> found["results"][0]["config"]["lengths"]
    [100]
    """
    options = sizes(states, features, gamma, free, threshold, one_hot, unit_norm, continuous, score_scale)
    which = (given("index", index), listed("lengths", lengths), whole("contexts", contexts), real("delta", delta), whole("seed", seed))
    return Result(_core.bound(source_of(task), options, *which, given("threads", threads), callback))


def neu(
    task: AnyTasks | None = None,
    *,
    params: Params | None = None,
    lengths: Wholes | None = None,
    layers: Wholes | None = None,
    samples: Whole = 2000,
    states: Whole | None = None,
    features: Whole | None = None,
    gamma: float | None = None,
    free: bool = False,
    threshold: float | None = None,
    one_hot: bool = False,
    unit_norm: bool = False,
    continuous: bool = False,
    score_scale: float | None = None,
    seed: Whole = 0,
    threads: Whole | None = None,
    callback: Callback | None = None,
) -> Result:
    """NEU, the pretraining objective of Theorem 3, over depth and context length, or at parameters beside θ_*: ``ictd neu``.

    J(θ) = Σ_i |E[δ ∂v/∂θ_i]|, the norm of the expected TD update. With ``params`` the two points are in ``"results"``, at the first length
    and depth; without them ``"results"`` has one sweep per family.

    >>> found = neu("dense", lengths=[10, 30], layers=[1, 2], samples=20, states=3)
    >>> len(found["results"][0]["points"])
    4
    """
    options = sizes(states, features, gamma, free, threshold, one_hot, unit_norm, continuous, score_scale)
    depths, lens = listed("layers", layers), listed("lengths", lengths)
    how = (whole("samples", samples), whole("seed", seed), given("threads", threads), callback)
    return Result(_core.neu(source_of(task), options, params, lens, depths, *how))


def regimes(
    task: AnyTasks | None = None,
    *,
    tasks: Whole = 20,
    states: Whole | None = None,
    features: Whole | None = None,
    free: bool = False,
    threshold: float | None = None,
    one_hot: bool = False,
    continuous: bool = False,
    seed: Whole = 0,
    threads: Whole | None = None,
    callback: Callback | None = None,
) -> Result:
    """A map of where depth converges, over score scale and discount, and of what repairs it: ``ictd regimes``.

    A layer multiplies errors by I − α(M − γMP), M(s, u) = μ(u)·k(s, u)/Σ_w μ(w)·k(s, w). Cells count the tasks where Assumption 5.1 holds
    (min_s M(s, s) > (1 + γ)/2), where small steps converge by proof, where they do in fact (all eigenvalues of M − γMP have positive real
    parts), and where none does (``unstable``). ``tasks`` per cell; the discount and the scores of the map take the place of the tasks'.

    >>> sorted(regimes("dense", tasks=1, states=3)["cells"][0])[:3]
    ['assumption', 'gamma', 'in_fact']
    """
    options = sizes(states, features, None, free, threshold, one_hot, False, continuous, None)
    how = (whole("tasks", tasks), whole("seed", seed), given("threads", threads), callback)
    return Result(_core.regimes(source_of(task), options, *how))


def lemmas(
    task: AnyTasks | None = None,
    *,
    trials: Whole = 5000,
    states: Whole | None = None,
    features: Whole | None = None,
    gamma: float | None = None,
    free: bool = False,
    threshold: float | None = None,
    one_hot: bool = False,
    unit_norm: bool = False,
    continuous: bool = False,
    score_scale: float | None = None,
    seed: Whole = 0,
    threads: Whole | None = None,
    callback: Callback | None = None,
) -> Result:
    """How tight the lemmas behind Theorem 3 are, on random inputs: ``ictd lemmas``. ``"results"`` has a row for each.

    >>> lemmas("dense", trials=10, states=3)["results"][0]["trials"]
    10
    """
    options = sizes(states, features, gamma, free, threshold, one_hot, unit_norm, continuous, score_scale)
    how = (whole("trials", trials), whole("seed", seed), given("threads", threads), callback)
    return Result(_core.lemmas(source_of(task), options, *how))


def verify(
    *,
    trials: Whole | None = None,
    layers: Whole | None = None,
    length: Whole | None = None,
    features: Whole | None = None,
    states: Whole | None = None,
    gamma: float | None = None,
    tolerance: float | None = None,
    seed: Whole = 0,
    threads: Whole | None = None,
    callback: Callback | None = None,
) -> Result:
    """Whether the forward pass is weighted softmax TD, and what else layers are said to be: ``ictd verify`` (Theorem 1, Lemma 1, Figure 7).

    50 prompts of 20 transitions, 8 features and 10 states, 10 layers, discount 0.9 and a tolerance of 1e-12 unless they are said.

    >>> verify(trials=2).holds
    True
    """
    sizes = (given("trials", trials), given("layers", layers), given("length", length), given("features", features), given("states", states))
    how = (some_real("gamma", gamma), some_real("tolerance", tolerance), whole("seed", seed), given("threads", threads), callback)
    return Result(_core.verify(*sizes, *how))


def msve(
    task: AnyTasks | None = None,
    *,
    tasks: Whole | None = None,
    layers: Whole | None = None,
    lengths: Wholes | None = None,
    kernel: str = "softmax",
    temperature: float = 1.0,
    step_size: float = 1.0,
    states: Whole | None = None,
    features: Whole | None = None,
    gamma: float | None = None,
    free: bool = False,
    threshold: float | None = None,
    one_hot: bool = False,
    unit_norm: bool = False,
    continuous: bool = False,
    score_scale: float | None = None,
    seed: Whole = 0,
    threads: Whole | None = None,
    callback: Callback | None = None,
) -> Result:
    """The value error against context length, averaged over random tasks: ``ictd msve`` (Figure 1).

    Σ_s μ(s)·(v_L(s) − v(s))², every state being a query, over 300 ``tasks`` and 15 ``layers`` unless they are said.

    >>> [point["n"] for point in msve(tasks=5, lengths=[1, 10])["points"]]
    [1, 10]
    """
    options = sizes(states, features, gamma, free, threshold, one_hot, unit_norm, continuous, score_scale)
    layer = (word("kernel", kernel), real("temperature", temperature), real("step_size", step_size))
    how = (given("tasks", tasks), given("layers", layers), listed("lengths", lengths), *layer)
    return Result(_core.msve(source_of(task), options, *how, whole("seed", seed), given("threads", threads), callback))
