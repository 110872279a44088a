"""What all estimators share: parameters, transitions, answers, copies, and how scikit-learn sees them."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from functools import cache
from html import escape
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from ictd import _core
from ictd._checks import given as whole_or_none
from ictd._checks import real, whole
from ictd._columns import Column, Floats, States, column, floats, has_sklearn, options
from ictd._progress import Callback, watched
from ictd.episodes import Log, of_targets
from ictd.errors import IctdError, InputError, RefusedWarning
from ictd.results import Result

__all__ = ["Estimator", "Judgement", "Missing", "NotFittedError"]

Missing = Literal["refuse", "drop", "mean"]

_FLOAT64 = np.dtype(np.float64)
#: What tells scikit-learn that a request is left as it is.
_UNCHANGED = "$UNCHANGED$"
#: Parameters that are numbers, and of which kind.
_NUMBERS: dict[str, Callable[[str, Any], float]] = {
    "gamma": real, "temperature": real, "ridge": real, "lambda": real, "layers": whole, "seed": whole,
}
_ROUTED = ("episode", "time", "terminated", "truncated", "next_state")


class NotFittedError(IctdError, ValueError, AttributeError):
    """An estimator was asked before it was fitted."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (NotFittedError if type(self) is NotFittedError else _not_fitted, self.args)


def _not_fitted(text: str) -> NotFittedError:
    """The error, which is scikit-learn's too where that is imported."""
    return (_not_fitted_kind() if has_sklearn() else NotFittedError)(text)


@cache
def _not_fitted_kind() -> type[NotFittedError]:
    from sklearn.exceptions import NotFittedError as Theirs  # type: ignore[import-untyped,import-not-found,unused-ignore]

    return type("NotFittedError", (NotFittedError, Theirs), {"__module__": __name__})


class Judgement:
    """How far values can be relied on: ``level`` is "trust", "caution" or "refuse", ``reasons`` are pairs of a level and words.

    It is true unless the level is "refuse", and shows itself as a table in a notebook.

    >>> found = Judgement("caution", [("caution", "few episodes"), ("trust", "not checked: that the log is complete")])
    >>> found
    CAUTION
      - few episodes
      · not checked: that the log is complete
    >>> bool(found)
    True
    """

    def __init__(self, level: str, reasons: list[tuple[str, str]]) -> None:
        self.level = level
        self.reasons = tuple(reasons)

    def __bool__(self) -> bool:
        return self.level != "refuse"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Judgement) and (self.level, self.reasons) == (other.level, other.reasons)

    def __hash__(self) -> int:
        return hash((self.level, self.reasons))

    def __repr__(self) -> str:
        lines = [f"  {'·' if level == 'trust' else '-'} {text}" for level, text in self.reasons]
        return "\n".join([self.level.upper(), *lines])

    def _repr_html_(self) -> str:
        colours = {"trust": "#2f855a", "caution": "#b7791f", "refuse": "#c53030"}
        rows = "".join(
            f'<tr><td style="color:{colours.get(level, "inherit")}">{escape(level)}</td><td style="text-align:left">{escape(text)}</td></tr>'
            for level, text in self.reasons
        )
        head = f'<b style="color:{colours.get(self.level, "inherit")}">{escape(self.level.upper())}</b>'
        return f"<table><thead><tr><th>{head}</th><th style='text-align:left'>reason</th></tr></thead><tbody>{rows}</tbody></table>"


class Estimator:
    """What all estimators share."""

    #: The name of the command line.
    _name: ClassVar[str]
    gamma: float
    missing: Missing
    seed: int
    threads: int | None

    # --- parameters

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        found = inspect.signature(cls.__init__).parameters
        return {name: parameter for name, parameter in found.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name. ``deep`` is there for scikit-learn: no parameter has parameters of its own."""
        return {name: getattr(self, name) for name in sorted(self._parameters())}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters by name; returns the estimator."""
        known = self._parameters()
        for name in params:
            if name not in known:
                raise InputError(f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {sorted(known)!r}.")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        given = (
            f"{name}={getattr(self, name)!r}"
            for name, parameter in self._parameters().items()
            if parameter.default is inspect.Parameter.empty or not _is_same(getattr(self, name), parameter.default)
        )
        return f"{type(self).__name__}({', '.join(given)})"

    def clone(self) -> Self:
        """A new estimator with the same parameters that is not fitted."""
        return type(self)(**copy.deepcopy(self.get_params(deep=False)))

    def _asked(self, states: States) -> str:
        """The questions as the library takes them."""
        given = {name: value for name, value in self.get_params().items() if name not in ("threads", "lambda_")}
        tuned = {name: None if isinstance(value, str) and value == "tune" else value for name, value in given.items()}
        # Labels have no units: they are left as they are.
        if tuned.get("scale") is not None and states.is_label and tuned["scale"] == "standardize":
            tuned["scale"] = None
        tuned["lambda"] = getattr(self, "lambda_", None)
        tuned |= {name: check(name, tuned[name]) for name, check in _NUMBERS.items() if name == "gamma" or tuned.get(name) is not None}
        return options(estimator=self._name, **tuned)

    @property
    def _threads(self) -> int | None:
        return whole_or_none("threads", self.threads)

    # --- transitions

    def _columns(self, X: Any, y: Any, given: dict[str, Any], states: States | None = None) -> dict[str, Any]:
        """Rows of transitions as the library takes them."""
        if isinstance(X, Log):
            if y is not None or any(value is not None for value in given.values()):
                raise InputError("y: found beside a log, which has its rewards, expected none")
            return X.arrays()
        states = states or States(X)
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        paid = floats(y, "y")
        if paid.ndim == 2 and paid.shape[1] == 1:
            self._warn_of_column()
            paid = paid[:, 0]
        given = {name: None if value is None else column(value, name) for name, value in given.items() if name != "next_state"} | {
            "next_state": given["next_state"]
        }
        if paid.ndim == 2 and paid.shape[1] == 3:
            told = of_targets(paid)
            twice = [name for name in ("episode", "terminated", "truncated") if given[name] is not None]
            if twice:
                raise InputError(f"{twice[0]}: found beside targets, which have it, expected one of them")
            paid = told.pop("rewards")
            given |= told
        elif paid.ndim != 1:
            raise InputError(f"y should be a 1d array, got an array of shape {paid.shape} instead; ictd.targets makes one of rewards, episodes and ends")
        if given["next_state"] is not None:
            after = States(given["next_state"], "next_state")
            if (after.width, after.is_label) != (states.width, states.is_label):
                raise InputError(f"next_state has {after.width} features, expected {states.width} as X has")
            given["next_state"] = after.values
        names = self._names_of(states)
        return {
            "columns": names,
            "is_label": states.is_label,
            "states": states.values,
            "rewards": np.ascontiguousarray(paid),
            **given,
        }

    @staticmethod
    def _names_of(states: States) -> list[str]:
        if states.is_label:
            return states.names or ["state"]
        return states.names or [f"x{k}" for k in range(states.width)]

    @staticmethod
    def _warn_of_column() -> None:
        kind: type[Warning] = UserWarning
        if has_sklearn():
            from sklearn.exceptions import DataConversionWarning  # type: ignore[import-untyped,import-not-found,unused-ignore]

            kind = DataConversionWarning
        text = "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for example using ravel()."
        warnings.warn(text, kind, stacklevel=4)

    # --- fitting

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        episode: Any = None,
        terminated: Any = None,
        truncated: Any = None,
        time: Any = None,
        next_state: Any = None,
        callback: Callback | None = None,
        progress: bool | None = False,
    ) -> Self:
        """Fits the estimator to transitions; returns it.

        Args:
            X: states that were left, (n, d) numbers, a frame, or n labels; or a :class:`Log` alone.
            y: the n rewards, NaN in the last row of an episode that was cut short; or :func:`targets` of shape (n, 3).
            episode: names of the episodes, n numbers or texts.
            terminated: whether each transition led to a terminal state.
            truncated: whether recording ended there.
            time: times of the rows; rows of an episode are then put in this order.
            next_state: states that followed, as X.
            callback: is told how far the fit is, and ends it by raising.
            progress: whether to write a line to stderr; None for where that is a terminal.

        Where the judgement is to refuse a :class:`ictd.errors.RefusedWarning` says why; where values diverge a
        :class:`ictd.errors.DivergedError` is raised.
        """
        given = {"episode": episode, "terminated": terminated, "truncated": truncated, "time": time, "next_state": next_state}
        if isinstance(X, Log):
            columns = self._columns(X, y, given)
            states = _states_of(X)
        else:
            states = States(X)
            columns = self._columns(X, y, given, states)
        asked = self._asked(states)
        with watched(callback, progress) as told:
            fitted = _core._fit(asked, columns, self._threads, told)
        # As they were when it was fitted: they may be written over.
        kept = {name: value.copy() if isinstance(value, (np.ndarray, list)) else value for name, value in columns.items()}
        self._given: tuple[str, dict[str, Any]] = (asked, kept)
        self._fitted: _core.Fitted | None = fitted
        self._result: Result | None = None
        self.n_features_in_ = states.width
        self._is_label = states.is_label
        self._of_log = isinstance(X, Log)
        if states.names is not None:
            self.feature_names_in_ = np.asarray(states.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._take(fitted)
        level, reasons = fitted.judgement()
        if level == "refuse":
            text = f"{type(self).__name__}: these values should not be used: {reasons[0][1]}"
            warnings.warn(text, RefusedWarning, stacklevel=2)
        return self

    def _take(self, fitted: _core.Fitted) -> None:
        """Takes what was chosen."""

    def __sklearn_is_fitted__(self) -> bool:
        return "_given" in self.__dict__

    def _engine(self) -> _core.Fitted:
        """The fitted estimator; made anew from its transitions in a copy that came from elsewhere."""
        if "_given" not in self.__dict__:
            raise _not_fitted(f"This {type(self).__name__} instance is not fitted yet: call fit first")
        if self._fitted is None:
            asked, columns = self._given
            self._fitted = _core._fit(asked, columns, self._threads, None)
        return self._fitted

    # --- answers

    def _states(self, X: Any) -> Column:
        """States as the library takes them, checked against those of the fit."""
        states = _states_of(X) if isinstance(X, Log) else States(X)
        name = type(self).__name__
        known = getattr(self, "feature_names_in_", None)
        if states.names is not None and known is not None and list(known) != states.names:
            lacking = [key for key in known if key not in states.names]
            added = [key for key in states.names if key not in known]
            text = "The feature names should match those that were passed during fit.\n"
            if added:
                text += "Feature names unseen at fit time:\n" + "".join(f"- {key}\n" for key in added[:5])
            if lacking:
                text += "Feature names seen at fit time, yet now missing:\n" + "".join(f"- {key}\n" for key in lacking[:5])
            if not added and not lacking:
                text += "Feature names must be in the same order as they were in fit.\n"
            raise InputError(text)
        if self._of_log or states.is_label:
            # Names of a log are those of its file: others come as they like.
            pass
        elif states.names is not None and known is None:
            warnings.warn(f"X has feature names, but {name} was fitted without feature names", UserWarning, stacklevel=3)
        elif states.names is None and known is not None:
            warnings.warn(f"X does not have valid feature names, but {name} was fitted with feature names", UserWarning, stacklevel=3)
        if states.is_label != self._is_label:
            kinds = ("features of two dimensions", "labels of one dimension")
            raise InputError(f"X: found {kinds[states.is_label]}, but {name} was fitted to {kinds[self._is_label]}")
        if states.width != self.n_features_in_:
            raise InputError(f"X has {states.width} features, but {name} is expecting {self.n_features_in_} features as input")
        return states.values

    def predict(self, X: Any) -> Floats:
        """The values of states: (n,) for n states. A state that the log knows nothing of has the mean."""
        fitted = self.__dict__.get("_fitted") or self._engine()
        if type(X) is np.ndarray and X.dtype == _FLOAT64 and X.ndim == 2 and X.shape[1] == self.n_features_in_ and not hasattr(self, "feature_names_in_"):
            return fitted.predict(X, self._threads)
        return fitted.predict(self._states(X), self._threads)

    def interval(self, X: Any) -> Floats:
        """Where the values of n states lie at 95 %: low and high ends, (n, 2).

        Ends come from resampled episodes and, of softmax TD, an estimate of the bias of stopping early. They stay within the returns that were seen.
        """
        return self._engine().interval(self._states(X), self._threads)[0]

    def extrapolated(self, X: Any) -> npt.NDArray[np.bool_]:
        """Which of n states are like none that was left in the log, or mostly lead to such."""
        return self._engine().interval(self._states(X), self._threads)[1]

    def judgement(self) -> Judgement:
        """How far the values of the log's states can be relied on, and why."""
        return Judgement(*self._engine().judgement())

    @property
    def result_(self) -> Result:
        """Everything that ``ictd evaluate`` says of the log: its JSON, text, figures and tables."""
        fitted = self._engine()
        if self._result is None:
            self._result = Result(fitted.report(self._threads))
        return self._result

    @property
    def states_(self) -> npt.NDArray[Any]:
        """The m states of the log, (m, d) or labels, in the order in which ``result_`` lists them."""
        return np.asarray(self._engine().states()[0])

    @property
    def visits_(self) -> npt.NDArray[np.uint64]:
        """How often each of ``states_`` was left, (m,)."""
        return self._engine().states()[1]

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        episode: Any = None,
        terminated: Any = None,
        truncated: Any = None,
        time: Any = None,
        next_state: Any = None,
    ) -> float:
        """Minus the mean squared distance of values from the returns that followed; larger is better, and 0 is best.

        Over the visits of these transitions, −mean (v(s) − g − γᵏ·v(s_k))²: g are the discounted rewards to the end of the episode, and s_k is the
        state it was cut short in after k steps (nothing where it terminated). Give whole episodes; :func:`targets` and ``GroupKFold`` keep them so.
        """
        fitted = self._engine()
        given = {"episode": episode, "terminated": terminated, "truncated": truncated, "time": time, "next_state": next_state}
        if not isinstance(X, Log):
            self._states(X)
        return fitted.score(self._columns(X, y, given), self._threads)

    # --- copies

    def __getstate__(self) -> dict[str, Any]:
        # The fit is the library's own: elsewhere it is made anew from the transitions, to the same last bit.
        left_out = {"_fitted": None, "_result": None} if "_given" in self.__dict__ else {}
        return self.__dict__ | left_out

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __copy__(self) -> Self:
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = self.__copy__()
        # Fits never change: copies share them.
        shared = ("_fitted", "_result", "_given")
        new.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items() if name not in shared})
        return new

    # --- scikit-learn

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(one_d_array=False, two_d_array=True, allow_nan=self.missing == "mean"),
        )

    def _request(self, method: str, given: dict[str, bool | str | None]) -> Self:
        requests = self._get_metadata_request()
        for name, wanted in given.items():
            if wanted != _UNCHANGED:
                getattr(requests, method).add_request(param=name, alias=wanted)
        self._metadata_request = requests
        return self

    def set_fit_request(
        self,
        *,
        episode: bool | str | None = _UNCHANGED,
        time: bool | str | None = _UNCHANGED,
        terminated: bool | str | None = _UNCHANGED,
        truncated: bool | str | None = _UNCHANGED,
        next_state: bool | str | None = _UNCHANGED,
    ) -> Self:
        """Says which of these scikit-learn's metadata routing shall hand to ``fit``."""
        given = {"episode": episode, "time": time, "terminated": terminated, "truncated": truncated, "next_state": next_state}
        return self._request("fit", given)

    def set_score_request(
        self,
        *,
        episode: bool | str | None = _UNCHANGED,
        time: bool | str | None = _UNCHANGED,
        terminated: bool | str | None = _UNCHANGED,
        truncated: bool | str | None = _UNCHANGED,
        next_state: bool | str | None = _UNCHANGED,
    ) -> Self:
        """Says which of these scikit-learn's metadata routing shall hand to ``score``."""
        given = {"episode": episode, "time": time, "terminated": terminated, "truncated": truncated, "next_state": next_state}
        return self._request("score", given)

    def _get_metadata_request(self) -> Any:
        from sklearn.utils.metadata_routing import MetadataRequest  # type: ignore[import-untyped,import-not-found,unused-ignore]

        if "_metadata_request" in self.__dict__:
            return copy.deepcopy(self._metadata_request)
        requests = MetadataRequest(owner=self)
        for method in ("fit", "score"):
            for name in _ROUTED:
                getattr(requests, method).add_request(param=name, alias=None)
        return requests

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's metadata routing shall hand on."""
        return self._get_metadata_request()


def _is_same(value: object, default: object) -> bool:
    """Whether a parameter is as usual. An array, which is compared entry by entry, never is."""
    return value is default or isinstance(value, (str, int, float, np.generic)) and bool(value == default)


def _states_of(log: Log) -> States:
    """The states of a log, with the names that it has for features."""
    states = States.__new__(States)
    states.is_label, states.values = log.is_label, log.states
    states.names = list(log.columns) if log.columns and not log.is_label else None
    return states
