"""Estimators within scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import ictd
from ictd.errors import RefusedWarning
from estimator_data import columns, walks

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

X, Y, REST = columns(walks())
TARGETS = ictd.targets(Y, **REST)
GROUPS = REST["episode"]

ESTIMATORS = [
    ictd.SoftmaxTD(0.9),
    ictd.KBRL(0.9),
    ictd.KernelLSTD(0.9),
    ictd.LinearLSTD(0.9),
    ictd.LinearTD(0.9),
    ictd.LSTD(0.9),
    ictd.LSTDLambda(0.9),
    ictd.TabularTD(0.9),
    ictd.MonteCarlo(0.9),
    ictd.Constant(0.9),
]

#: Checks that fail, and why they may.
EXPECTED: dict[str, str] = {
    "check_fit2d_1sample": "one row is one transition of which nobody knows where it led: the error says that",
}


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """The checks fit random rows as one episode, which is refused with a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefusedWarning)
        yield


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda m: type(m).__name__)
def test_estimators_keep_to_the_conventions(model: Any) -> None:
    results = check_estimator(model, expected_failed_checks=EXPECTED, on_skip=None, on_fail=None)
    failed = [f"{r['check_name']}: {r['exception']!r}" for r in results if r["status"] == "failed"]
    assert not failed, "\n".join(failed)
    assert len([r for r in results if r["status"] == "passed"]) >= 35
    # None of the exceptions is there for nothing.
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(EXPECTED)


def test_a_grid_is_searched_without_routing() -> None:
    grid = {"layers": [1, 8], "temperature": [0.3, 3.0]}
    search = GridSearchCV(ictd.SoftmaxTD(0.9), grid, cv=GroupKFold(3), error_score="raise").fit(X, TARGETS, groups=GROUPS)
    assert search.best_params_ in [{"layers": l, "temperature": t} for l in grid["layers"] for t in grid["temperature"]]
    scores = search.cv_results_["mean_test_score"]
    assert np.all(scores < 0) and search.best_score_ == scores.max()
    # By hand: whole episodes on either side, and the score of the estimator.
    by_hand = []
    for train, test in GroupKFold(3).split(X, TARGETS, GROUPS):
        model = ictd.SoftmaxTD(0.9, **search.best_params_).fit(X[train], Y[train], **{k: v[train] for k, v in REST.items()})
        by_hand.append(model.score(X[test], Y[test], **{k: v[test] for k, v in REST.items()}))
    assert search.best_score_ == pytest.approx(np.mean(by_hand), rel=1e-12)
    np.testing.assert_array_equal(search.predict(X[:5]), ictd.SoftmaxTD(0.9, **search.best_params_).fit(X, TARGETS).predict(X[:5]))


def test_a_grid_is_searched_in_a_pipeline() -> None:
    pipe = Pipeline([("scale", StandardScaler()), ("values", ictd.SoftmaxTD(0.9, scale="none"))])
    search = GridSearchCV(pipe, {"values__layers": [1, 8]}, cv=GroupKFold(3), error_score="raise", n_jobs=2)
    search.fit(X, TARGETS, groups=GROUPS)
    assert search.best_params_["values__layers"] in (1, 8) and search.predict(X).shape == (len(X),)


def test_metadata_routing_hands_episodes_on() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        wanted = {"episode": True, "terminated": True}
        model = ictd.SoftmaxTD(0.9, layers=4).set_fit_request(**wanted).set_score_request(**wanted)
        assert clone(model).get_metadata_routing().fit.requests == model.get_metadata_routing().fit.requests
        # A pipeline hands on what its steps ask for. (Its score cannot: scikit-learn 1.9 hands `sample_weight` to all scores beside other metadata.)
        pipe = make_pipeline(StandardScaler(), model).fit(X, Y, **REST)
        params = {"groups": GROUPS, **REST}
        routed = cross_validate(model, X, Y, cv=GroupKFold(3), params=params, error_score="raise")["test_score"]
        search = GridSearchCV(model, {"layers": [4]}, cv=GroupKFold(3), error_score="raise").fit(X, Y, groups=GROUPS, **REST)
        with pytest.raises(Exception, match="episode"):
            cross_validate(ictd.SoftmaxTD(0.9, layers=4), X, Y, cv=GroupKFold(3), params=params, error_score="raise")
    sliced = cross_val_score(ictd.SoftmaxTD(0.9, layers=4), X, TARGETS, groups=GROUPS, cv=GroupKFold(3), error_score="raise")
    assert search.best_score_ == pytest.approx(sliced.mean(), rel=1e-12)
    np.testing.assert_allclose(routed, sliced, rtol=1e-12)
    np.testing.assert_allclose(pipe.predict(X), ictd.SoftmaxTD(0.9, layers=4).fit(X, TARGETS).predict(X), rtol=1e-9)


def test_clones_have_parameters_and_no_fit() -> None:
    model = ictd.SoftmaxTD(0.9, layers=4).fit(X, TARGETS)
    made = clone(model)
    assert made.get_params() == model.get_params() and not hasattr(made, "layers_")


def test_names_of_features_are_kept_and_compared() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["speed", "height"])
    model = ictd.LSTD(0.9).fit(frame, TARGETS)
    assert model.feature_names_in_.tolist() == ["speed", "height"]
    np.testing.assert_array_equal(model.predict(frame), ictd.LSTD(0.9).fit(X, TARGETS).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["height", "speed"]])
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X)
