"""Estimators against equations, kinds of input, copies."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ictd
from ictd.errors import DivergedError, InputError, InputTypeError, RefusedWarning
from estimator_data import columns, walks
from estimator_reference import Table

EPISODES = walks()
X, Y, REST = columns(EPISODES)
QUERIES = np.concatenate([X[:7], [[0.3, -0.7], [5.0, 5.0]]])
GAMMA = 0.9
CUSTOMERS = Path(__file__).parents[3] / "docs/data/customers.csv"

CASES: list[tuple[Any, Any]] = [
    (ictd.SoftmaxTD(GAMMA, temperature=0.3, layers=25), lambda t, q: t.softmax_td(q, 0.3, 25)),
    (ictd.SoftmaxTD(GAMMA, temperature=2.0, layers=0), lambda t, q: t.softmax_td(q, 2.0, 0)),
    (ictd.KBRL(GAMMA, temperature=0.5), lambda t, q: t.kbrl(q, 0.5)),
    (ictd.KernelLSTD(GAMMA, temperature=0.5, ridge=1e-2), lambda t, q: t.kernel_lstd(q, 0.5, 1e-2)),
    (ictd.LinearLSTD(GAMMA, ridge=1e-3), lambda t, q: t.linear_lstd(q, 1e-3)),
    (ictd.LinearTD(GAMMA, layers=40), lambda t, q: t.linear_td(q, 40)),
    (ictd.LSTD(GAMMA), lambda t, q: t.lstd(q)),
    (ictd.LSTDLambda(GAMMA, lambda_=0.7), lambda t, q: t.lstd(q, 0.7)),
    (ictd.TabularTD(GAMMA, layers=12), lambda t, q: t.tabular_td(q, 12)),
    (ictd.MonteCarlo(GAMMA), lambda t, q: t.monte_carlo(q)),
    (ictd.Constant(GAMMA), lambda t, q: t.held(np.full(len(q), t.c))),
]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Random rewards are judged as they are; the tests of judgements look for the warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefusedWarning)
        yield


@pytest.mark.parametrize(("model", "expected"), CASES, ids=[f"{type(m).__name__}-{k}" for k, (m, _) in enumerate(CASES)])
@pytest.mark.parametrize("repeats", [True, False])
def test_values_are_those_of_the_equations(model: Any, expected: Any, repeats: bool) -> None:
    episodes = walks(repeats=repeats)
    x, y, rest = columns(episodes)
    queries = np.concatenate([x[:7], [[0.3, -0.7], [5.0, 5.0]]])
    found = model.clone().fit(x, y, **rest).predict(queries)
    # Sums in another order, and systems of condition up to 1e4.
    np.testing.assert_allclose(found, expected(Table(episodes, GAMMA), queries), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("model", "expected"), CASES, ids=[f"{type(m).__name__}-{k}" for k, (m, _) in enumerate(CASES)])
def test_values_of_many_states_are_those_of_few(model: Any, expected: Any) -> None:
    model = model.clone().fit(X, Y, **REST)
    many = np.random.default_rng(0).normal(size=(3000, 2))
    parts = [model.predict(many[first : first + 7]) for first in range(0, 3000, 7)]
    np.testing.assert_array_equal(model.predict(many), np.concatenate(parts))


def test_values_of_more_states_than_weights_fit() -> None:
    # A table of the weights of all of them would have 1.4e8 numbers, more than are kept at a time.
    x = np.random.default_rng(0).normal(size=(600, 1))
    model = ictd.KBRL(0.9, temperature=0.5).fit(x, x[:, 0], episode=np.arange(600), terminated=np.ones(600))
    found = model.predict(np.repeat(np.linspace(-1.0, 1.0, 115_000), 2)[:, None])
    np.testing.assert_array_equal(found[::2], found[1::2])
    np.testing.assert_array_equal(found[:10:2], model.predict(np.linspace(-1.0, 1.0, 115_000)[:5, None]))


def test_views_larger_than_memory_are_refused() -> None:
    model = ictd.LSTD(GAMMA).fit(X, Y, **REST)
    for kind in (np.float64, np.int64, np.float32, np.bool_):
        wide = np.broadcast_to(np.array([0, 1], dtype=kind), (10**10, 2))
        long = np.broadcast_to(np.array(1, dtype=kind), 10**10)
        for call in (
            lambda: model.predict(wide),
            lambda: model.interval(wide),
            lambda: ictd.LSTD(GAMMA).fit(wide, long),
            lambda: ictd.LSTD(GAMMA).fit(X, Y, episode=long),
            lambda: ictd.targets(long),
            lambda: ictd.as_log([{"observations": wide, "rewards": [1.0]}]),
        ):
            with pytest.raises(InputError, match="memory is about"):
                call()


def test_attention_is_the_kernel_times_visits() -> None:
    model = ictd.SoftmaxTD(GAMMA, temperature=0.3, layers=5).fit(X, Y, **REST)
    table = Table(EPISODES, GAMMA)
    found = model.attention(QUERIES)
    assert found.shape == (len(QUERIES), len(model.states_))
    np.testing.assert_allclose(found.sum(1), 1.0, atol=1e-12)
    place = {tuple(row): k for k, row in enumerate(table.raw)}
    order = [place[tuple(row)] for row in model.states_]
    np.testing.assert_allclose(found, table.attention(QUERIES, 0.3)[:, order], atol=1e-12)
    np.testing.assert_array_equal(model.visits_, table.n[order])


def test_scores_are_minus_square_errors_of_returns() -> None:
    other = walks(12, seed=5)
    x, y, rest = columns(other)
    model = ictd.SoftmaxTD(GAMMA, temperature=0.3, layers=25).fit(X, Y, **REST)
    held_out = Table(other, GAMMA)
    expected = Table(EPISODES, GAMMA).score(held_out, model.predict(held_out.raw))
    assert model.score(x, y, **rest) == pytest.approx(expected, rel=1e-12)
    assert model.score(x, ictd.targets(y, **rest)) == pytest.approx(expected, rel=1e-12)


def test_intervals_hold_values_and_stay_within_returns() -> None:
    model = ictd.SoftmaxTD(GAMMA).fit(X, Y, **REST)
    values, ends = model.predict(QUERIES), model.interval(QUERIES)
    low, high = Table(EPISODES, GAMMA).range
    assert np.all((low <= ends[:, 0]) & (ends[:, 0] <= values + 1e-12) & (values <= ends[:, 1] + 1e-12) & (ends[:, 1] <= high))
    assert model.extrapolated([[50.0, 50.0], [0.0, 0.0]]).tolist() == [True, False]


@pytest.mark.parametrize("temperature", [3.0, 0.01], ids=["pivots", "landmarks"])
def test_many_states_have_the_values_of_the_command(temperature: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2600, 2))
    model = ictd.SoftmaxTD(0.8, temperature=temperature, layers=8).fit(x, x[:, 0], episode=np.arange(2600) // 10, terminated=np.arange(2600) % 10 == 9)
    chosen = model.result_["chosen"]["route"]["name"]
    assert chosen == ("pivots" if temperature > 1.0 else "landmarks")
    np.testing.assert_allclose(model.predict(model.states_), [row["value"] for row in model.result_["rows"]], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.attention(x[:9]).sum(1), 1.0, rtol=1e-9)


def test_labels_are_states_of_their_own() -> None:
    names = np.array(["a", "b", "c"] * 20)
    y = np.array([0.0, 1.0, 2.0] * 20)
    rest = {"episode": np.repeat(np.arange(20), 3), "terminated": [0, 0, 1] * 20}
    model = ictd.LSTD(0.5).fit(names, y, **rest)
    np.testing.assert_allclose(model.predict(["c", "a", "nobody"]), [2.0, 1.0, ictd.Constant(0.5).fit(names, y, **rest).predict(["a"])[0]])
    assert model.states_.tolist() == ["a", "b", "c"] and model.n_features_in_ == 1
    numbers = ictd.LSTD(0.5).fit(np.array([7, 8, 9] * 20), y, **rest)
    np.testing.assert_allclose(numbers.predict([9, 7]), [2.0, 1.0])
    soft = ictd.SoftmaxTD(0.5).fit(names, y, **rest)
    assert soft.attention(["a"]).shape == (1, 3) and soft.attention(["nobody"]).sum() == 0.0
    with pytest.raises(InputError, match="labels of one dimension"):
        model.predict([[1.0]])


def test_what_estimator_and_command_find_is_the_same() -> None:
    log = ictd.read_log(CUSTOMERS)
    by_path = ictd.evaluate(CUSTOMERS, 0.98)
    model = ictd.SoftmaxTD(0.98).fit(log)
    assert (model.temperature_, model.layers_) == (by_path["chosen"]["temperature"], by_path["chosen"]["layers"])
    assert model.judgement().level == by_path["judgement"] and [text for _, text in model.judgement().reasons] == by_path["reasons"]
    rows = by_path["rows"]
    states = np.array([list(row["state"].values()) for row in rows])
    np.testing.assert_array_equal(model.states_, states)
    by_columns = ictd.SoftmaxTD(0.98).fit(log.states, log.rewards, episode=log.episode, terminated=log.terminated, time=log.time)
    np.testing.assert_array_equal(by_columns.predict(states), model.predict(states))
    np.testing.assert_allclose(model.predict(states), [row["value"] for row in rows], rtol=1e-12)
    np.testing.assert_allclose(model.interval(states), [[row["low"], row["high"]] for row in rows], rtol=1e-12)
    assert model.result_["rows"] == rows and model.result_["mean"] == by_path["mean"]
    assert model.result_.figures.keys() == by_path.figures.keys()
    assert ictd.evaluate(log, 0.98)["rows"] == rows


def test_one_episode_has_values_and_a_refusal() -> None:
    x = np.linspace(0, 1, 12)[:, None]
    with pytest.warns(RefusedWarning, match="too few episodes"):
        model = ictd.SoftmaxTD(0.9).fit(x, x[:, 0])
    assert not model.judgement() and model.layers_ == 15
    d2 = ((x - x.mean()) / x[:-1].std() - ((x - x.mean()) / x[:-1].std()).T)[:11, :11] ** 2
    pairs = np.sort(d2[np.triu_indices(11, 1)])
    # The first pair below which lies at least half of the weight.
    assert model.temperature_ == pytest.approx(pairs[int(np.ceil(len(pairs) / 2)) - 1])
    assert np.all(np.isfinite(model.predict(x)))
    ends = model.interval(x)
    assert np.ptp(ends[:, 0]) == 0.0 and np.ptp(ends[:, 1]) == 0.0
    for kind in (ictd.LSTD, ictd.LinearLSTD, ictd.KernelLSTD, ictd.KBRL, ictd.TabularTD, ictd.LinearTD, ictd.MonteCarlo, ictd.Constant, ictd.LSTDLambda):
        assert np.all(np.isfinite(kind(0.9).fit(x, x[:, 0]).predict(x)))


def test_divergence_is_an_error() -> None:
    x = np.array([[1.0], [1000.0]] * 10)
    y, rest = np.arange(20.0), {"episode": np.repeat(np.arange(10), 2), "terminated": [0, 1] * 10}
    with pytest.raises(DivergedError, match="diverge|overflow"):
        ictd.LinearTD(0.99, layers=1_000_000, scale="none").fit(x, y, **rest)


VARIANTS: dict[str, Any] = {
    "float32": lambda a: a.astype(np.float32),
    "big endian": lambda a: a.astype(">f8"),
    "object": lambda a: a.astype(object),
    "Fortran": np.asfortranarray,
    "non-contiguous": lambda a: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
    "reversed strides": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "list": lambda a: a.tolist(),
    "float16": lambda a: a.astype(np.float16),
    "longdouble": lambda a: a.astype(np.longdouble),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_kinds_of_arrays_are_the_same(variant: str) -> None:
    make = VARIANTS[variant]
    # 0, 1 and 2.5 are the same in all of these.
    model, expected = ictd.SoftmaxTD(GAMMA, temperature=0.3, layers=5), ictd.SoftmaxTD(GAMMA, temperature=0.3, layers=5).fit(X, Y, **REST)
    found = model.fit(make(X), Y, **REST)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    np.testing.assert_array_equal(expected.predict(make(X)), expected.predict(X))


def test_integers_truth_values_and_read_only_arrays_are_taken() -> None:
    whole = (X * 2).astype(np.int32)
    expected = ictd.LSTD(GAMMA).fit(whole.astype(float), Y, **REST).predict(whole.astype(float))
    np.testing.assert_array_equal(ictd.LSTD(GAMMA).fit(whole, Y, **REST).predict(whole), expected)
    flags = X > 0
    np.testing.assert_array_equal(
        ictd.LSTD(GAMMA).fit(flags, Y, **REST).predict(flags), ictd.LSTD(GAMMA).fit(flags.astype(float), Y, **REST).predict(flags.astype(float))
    )
    frozen = X.copy()
    frozen.setflags(write=False)
    ictd.LSTD(GAMMA).fit(frozen, Y, episode=REST["episode"].astype(np.uint8), terminated=REST["terminated"].astype(bool)).predict(frozen)


def test_what_is_written_over_does_not_change_a_fit() -> None:
    x, y = X.copy(), Y.copy()
    model = ictd.LSTD(GAMMA).fit(x, y, **REST)
    expected = model.predict(X)
    x.fill(0.0)
    y.fill(0.0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)


REFUSALS: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    ([[1.0], [np.nan]], [1.0, 2.0], {"terminated": [0, 1]}, InputError, "row 1, column x0"),
    ([[1.0], [np.inf]], [1.0, 2.0], {"terminated": [0, 1]}, InputError, "finite number"),
    ([[1.0], [2.0]], [np.nan, 2.0], {"terminated": [0, 1]}, InputError, "row 0, column y: found no value"),
    ([[1.0], [2.0]], [1.0, np.inf], {"terminated": [0, 1]}, InputError, "row 1, column y"),
    ([[1.0], [2.0]], [1.0, 2.0], {"terminated": [0, 2]}, InputError, "row 1, column terminated"),
    ([[1.0], [2.0]], [1.0, 2.0], {"terminated": [[0, 1]]}, InputError, "terminated has shape"),
    ([[1.0], [2.0]], [1.0, 2.0], {"episode": [0]}, InputError, "episode: found 1 rows, expected 2"),
    ([[1.0], [2.0]], [1.0], {}, InputError, "y: found 1 rows, expected 2"),
    ([[1.0], [2.0]], [1.0, 2.0], {"next_state": [[1.0, 2.0]] * 2}, InputError, "next_state has 2 features"),
    ([[1.0], [2.0]], None, {}, InputError, "the target y is None"),
    ([[1.0], [2.0]], [1 + 1j, 2.0], {}, InputError, "Complex data not supported"),
    ([[1.0], [2.0]], ["a", "b"], {}, InputTypeError, "real numbers"),
    ([["a", 1.0], ["b", 2.0]], [1.0, 2.0], {}, InputTypeError, "real numbers"),
    ([[1.0], [2.0, 3.0]], [1.0, 2.0], {}, InputError, "inhomogeneous"),
    (np.zeros((0, 2)), [], {}, InputError, "0 rows"),
    (np.zeros((2, 0)), [1.0, 2.0], {}, InputError, r"0 feature\(s\)"),
    (np.zeros((2, 2, 2)), [1.0, 2.0], {}, InputError, "3D"),
    ([1.0, 2.0], [1.0, 2.0], {}, InputError, "Reshape your data"),
    (3.0, [1.0], {}, InputError, "scalar"),
    ([[1.0], [2.0]], [[1.0, 2.0, 9.0], [1.0, 2.0, 0.0]], {}, InputError, "ictd.targets"),
    ([[1.0], [2.0]], [[1.0, 2.0], [1.0, 2.0]], {}, InputError, "1d array"),
    ([[1.0]], [1.0], {}, InputError, "found no transition"),
    (np.array([[1], [2]], dtype="M8[s]"), [1.0, 2.0], {}, InputTypeError, "real numbers"),
]


@pytest.mark.parametrize(("x", "y", "rest", "error", "text"), REFUSALS, ids=[f"{k}-{r[4][:24]}" for k, r in enumerate(REFUSALS)])
def test_what_makes_no_sense_is_refused_in_one_line(x: Any, y: Any, rest: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as found:
        ictd.SoftmaxTD(0.9).fit(x, y, **rest)
    assert isinstance(found.value, (ValueError, TypeError)) and "--" not in str(found.value)


PARAMETERS: list[tuple[Any, str]] = [
    (ictd.SoftmaxTD(1.5), "gamma is 1.5"),
    (ictd.SoftmaxTD(float("nan")), "gamma|options"),
    (ictd.SoftmaxTD("a"), "gamma is of type str, expected a number"),  # type: ignore[arg-type]
    (ictd.SoftmaxTD(0.9, kernel="rfb"), "rfb"),
    (ictd.SoftmaxTD(0.9, temperature=-1.0), "temperature"),
    (ictd.SoftmaxTD(0.9, layers=-1), "layers is -1, expected a whole number"),
    (ictd.SoftmaxTD(0.9, layers="deep"), "layers is of type str, expected a whole number"),  # type: ignore[arg-type]
    (ictd.SoftmaxTD(0.9, scale="max"), "options"),  # type: ignore[arg-type]
    (ictd.SoftmaxTD(0.9, missing="ignore"), "missing"),  # type: ignore[arg-type]
    (ictd.SoftmaxTD(0.9, threads=0), "threads"),
    (ictd.SoftmaxTD(0.9, seed=-1), "seed is -1, expected a whole number"),
    (ictd.LinearLSTD(0.9, ridge=-1.0), "ridge"),
    (ictd.LSTDLambda(0.9, lambda_=2.0), "lambda"),
]


@pytest.mark.parametrize(("model", "text"), PARAMETERS, ids=[repr(m) for m, _ in PARAMETERS])
def test_parameters_out_of_range_are_refused_by_name(model: Any, text: str) -> None:
    with pytest.raises((InputError, InputTypeError), match=text):
        model.fit(X, Y, **REST)


def test_queries_are_checked() -> None:
    model = ictd.SoftmaxTD(GAMMA, temperature=0.3, layers=5).fit(X, Y, **REST)
    assert model.predict(np.zeros((0, 2))).shape == (0,) and model.interval(np.zeros((0, 2))).shape == (0, 2)
    with pytest.raises(InputError, match="row 1, column x0: found NaN"):
        model.predict([[0.0, 0.0], [np.nan, 0.0]])
    with pytest.raises(InputError, match="X has 3 features, but SoftmaxTD is expecting 2"):
        model.predict(np.zeros((1, 3)))
    with pytest.raises(ictd.NotFittedError, match="not fitted"):
        ictd.SoftmaxTD(0.9).predict(X)
    with pytest.raises(InputError, match="takes no averages|softmax-td"):
        ictd.LSTD(0.9).fit(X, Y, **REST)._engine().attention(X, None)


def test_missing_features_are_dropped_or_means() -> None:
    x = X.copy()
    x[3, 0] = np.nan
    with pytest.raises(InputError, match="row 3, column x0"):
        ictd.LSTD(GAMMA).fit(x, Y, **REST)
    mean = ictd.LSTD(GAMMA, missing="mean").fit(x, Y, **REST)
    filled = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
    # Where a feature is missing the state is that of the mean, to the last bit.
    np.testing.assert_allclose(mean.predict(x), ictd.LSTD(GAMMA).fit(filled, Y, **REST).predict(filled), rtol=1e-12)
    assert np.all(np.isfinite(ictd.LSTD(GAMMA, missing="drop").fit(x, Y, **REST).predict(X)))


def test_next_states_stand_for_next_rows() -> None:
    rows = [(s[t], r[t], s[t + 1] if t + 1 < len(s) else s[t], e and t + 1 == len(r), k) for k, (s, r, e) in enumerate(EPISODES) for t in range(len(r))]
    x, y, after, ends, episode = (np.array(part) for part in zip(*rows, strict=True))
    for given in ({"episode": episode}, {}):
        found = ictd.LSTD(GAMMA).fit(x, y, next_state=after, terminated=ends, **given).predict(QUERIES)
        np.testing.assert_allclose(found, ictd.LSTD(GAMMA).fit(X, Y, **REST).predict(QUERIES), rtol=1e-9)
    shuffled = np.random.default_rng(0).permutation(len(x))
    found = ictd.LSTD(GAMMA).fit(x[shuffled], y[shuffled], next_state=after[shuffled], terminated=ends[shuffled]).predict(QUERIES)
    np.testing.assert_allclose(found, ictd.LSTD(GAMMA).fit(X, Y, **REST).predict(QUERIES), rtol=1e-9)


def test_the_order_of_episodes_and_of_rows_with_times_does_not_matter() -> None:
    time = np.concatenate([np.arange(len(s)) for s, _, _ in EPISODES])
    order = np.random.default_rng(1).permutation(len(X))
    expected = ictd.SoftmaxTD(GAMMA).fit(X, Y, time=time, **REST)
    found = ictd.SoftmaxTD(GAMMA).fit(X[order], Y[order], time=time[order], **{k: v[order] for k, v in REST.items()})
    np.testing.assert_array_equal(found.predict(QUERIES), expected.predict(QUERIES))
    np.testing.assert_array_equal(found.interval(QUERIES), expected.interval(QUERIES))


def test_threads_do_not_matter() -> None:
    one, two = (ictd.SoftmaxTD(GAMMA, threads=k).fit(X, Y, **REST) for k in (1, 2))
    np.testing.assert_array_equal(one.predict(QUERIES), two.predict(QUERIES))
    np.testing.assert_array_equal(one.interval(QUERIES), two.interval(QUERIES))


def test_copies_give_the_same() -> None:
    model = ictd.SoftmaxTD(GAMMA).fit(X, Y, **REST)
    expected, ends = model.predict(QUERIES), model.interval(QUERIES)
    for made in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.deepcopy(pickle.loads(pickle.dumps(model)))):
        np.testing.assert_array_equal(made.predict(QUERIES), expected)
        np.testing.assert_array_equal(made.interval(QUERIES), ends)
        assert made.get_params() == model.get_params() and made.judgement() == model.judgement()
        assert (made.temperature_, made.layers_) == (model.temperature_, model.layers_)
    # What is set afterwards does not change a fit, here or elsewhere.
    model.set_params(gamma=0.1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(QUERIES), expected)
    fresh = pickle.loads(pickle.dumps(ictd.SoftmaxTD(0.5)))
    assert fresh.get_params() == ictd.SoftmaxTD(0.5).get_params() and not fresh.__sklearn_is_fitted__()


def test_parameters_can_be_got_set_and_shown() -> None:
    model = ictd.SoftmaxTD(0.9, layers=3)
    assert repr(model) == "SoftmaxTD(gamma=0.9, layers=3)"
    assert model.set_params(gamma=0.5, kernel="softmax").get_params()["kernel"] == "softmax"
    assert model.clone().get_params() == model.get_params() and model.clone() is not model
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        model.set_params(depth=3)


def test_judgements_show_themselves() -> None:
    judgement = ictd.SoftmaxTD(GAMMA).fit(X, Y, **REST).judgement()
    assert judgement.level in ("trust", "caution", "refuse") and repr(judgement).startswith(judgement.level.upper())
    assert "<table>" in judgement._repr_html_() and pickle.loads(pickle.dumps(judgement)) == judgement
    assert json.loads(json.dumps(judgement.reasons))
