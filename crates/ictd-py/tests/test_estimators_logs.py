"""Logs from files, frames, Arrow, Minari and episodes."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ictd
from ictd.errors import FileError, InputError, RefusedWarning
from estimator_data import columns, walks

pd = pytest.importorskip("pandas")

CUSTOMERS = Path(__file__).parents[3] / "docs/data/customers.csv"
EPISODES = walks()
X, Y, REST = columns(EPISODES)


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefusedWarning)
        yield


def values(log: ictd.Log) -> np.ndarray:
    return ictd.LSTD(0.9).fit(log).predict(X[:9])


EXPECTED = ictd.LSTD(0.9).fit(X, Y, **REST).predict(X[:9])


def observed(terminal: bool) -> list[dict[str, Any]]:
    """T + 1 observations; those of episodes that terminated end in a state that has no value."""
    last = np.array([[9.0, 9.0]])
    return [
        {
            "observations": np.concatenate([s, last]) if e and terminal else s,
            "rewards": r,
            "terminations": np.arange(len(r)) == len(r) - 1 if e else np.zeros(len(r), bool),
            "truncations": not e,
        }
        for s, r, e in EPISODES
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_lists_of_episodes(terminal: bool) -> None:
    log = ictd.as_log(observed(terminal))
    np.testing.assert_allclose(values(log), EXPECTED, rtol=1e-9)
    np.testing.assert_array_equal(log.states, X)
    np.testing.assert_allclose(ictd.LSTD(0.9).fit(log.states, log.targets).predict(X[:9]), EXPECTED, rtol=1e-9)


def test_episodes_may_be_objects() -> None:
    class Episode:
        def __init__(self, given: dict[str, Any]) -> None:
            self.__dict__.update(given)

    np.testing.assert_allclose(values(ictd.as_log(Episode(e) for e in observed(True))), EXPECTED, rtol=1e-9)


@pytest.mark.parametrize(
    ("episode", "text"),
    [
        ({"rewards": [1.0]}, "no observations"),
        ({"observations": [[1.0]]}, "no rewards"),
        ({"observations": [[1.0]] * 4, "rewards": [1.0]}, "found 4 observations, expected 2"),
        ({"observations": [[1.0]] * 3, "rewards": [1.0, 2.0], "terminations": [True, False]}, "before the last step"),
        ({"observations": {"a": [1.0]}, "rewards": [1.0]}, "one array"),
        ({"observations": [], "rewards": []}, "at least one reward"),
    ],
)
def test_episodes_are_checked(episode: dict[str, Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"episode 0.*{text}"):
        ictd.as_log([episode])


def table() -> dict[str, Any]:
    return {
        "episode": [f"e{k}" for k in REST["episode"]],
        "speed": X[:, 0],
        "height": X[:, 1],
        "reward": Y,
        "terminated": REST["terminated"].astype(bool),
    }


def frames() -> list[Any]:
    made = []
    for module in ("pandas", "polars", "pyarrow"):
        try:
            library = __import__(module)
        except ImportError:
            continue
        make = library.table if module == "pyarrow" else library.DataFrame
        made.append(pytest.param(make, id=module))
        if module == "pyarrow":

            class Capsule:
                def __init__(self, given: dict[str, Any]) -> None:
                    import pyarrow

                    self.inner = pyarrow.table(given)

                def __arrow_c_stream__(self, requested_schema: object = None) -> object:
                    return self.inner.__arrow_c_stream__(requested_schema)

            made.append(pytest.param(Capsule, id="capsule"))
    return made


@pytest.mark.parametrize("make", frames())
def test_frames_are_read_as_files_are(make: Any) -> None:
    log = ictd.as_log(make(table()))
    assert log.columns == ("speed", "height")
    np.testing.assert_allclose(values(log), EXPECTED, rtol=1e-9)
    renamed = {("payment" if name == "reward" else name): column for name, column in table().items()}
    np.testing.assert_allclose(values(ictd.as_log(make(renamed), reward="payment")), EXPECTED, rtol=1e-9)
    with pytest.raises(InputError, match="expected one for rewards"):
        ictd.as_log(make(renamed))


@pytest.mark.parametrize("make", frames())
def test_frames_are_states(make: Any) -> None:
    given = {"speed": X[:, 0], "height": X[:, 1]}
    model = ictd.LSTD(0.9).fit(make(given), Y, **REST)
    assert model.feature_names_in_.tolist() == ["speed", "height"]
    np.testing.assert_array_equal(model.predict(make(given))[:9], EXPECTED)
    labels = ictd.LSTD(0.5).fit(make({"plan": ["a", "b"] * 8}), [0.0, 1.0] * 8, episode=np.repeat(np.arange(8), 2), terminated=[0, 1] * 8)
    assert labels.predict(["a", "b"]).tolist() == [0.5, 1.0]


def test_pandas_may_lack_values_and_have_other_kinds() -> None:
    frame = pd.DataFrame(table())
    frame["speed"] = frame["speed"].astype("Float64")
    frame["episode"] = frame["episode"].astype("category")
    frame["height"] = frame["height"].astype("float32")
    frame["reward"] = frame["reward"].astype("Float64")
    np.testing.assert_allclose(values(ictd.as_log(frame)), EXPECTED, rtol=1e-9)
    model = ictd.LSTD(0.9).fit(frame[["speed", "height"]], frame["reward"], episode=frame["episode"], terminated=frame["terminated"])
    np.testing.assert_allclose(model.predict(frame[["speed", "height"]])[:9], EXPECTED, rtol=1e-9)


def test_files_are_read_by_the_library() -> None:
    log = ictd.read_log(CUSTOMERS)
    assert log.columns == ("logins", "seats") and not log.is_label and log.time is not None
    np.testing.assert_array_equal(ictd.as_log(str(CUSTOMERS)).states, log.states)
    with pytest.raises(FileError) as found:
        ictd.read_log("nowhere.csv")
    assert isinstance(found.value, FileNotFoundError)
    with pytest.raises(InputError, match="no column 'nothing'"):
        ictd.read_log(CUSTOMERS, reward="nothing")


def test_evaluate_takes_options_of_the_command() -> None:
    found = ictd.evaluate(CUSTOMERS, 0.98, estimator="lstd", seed=3)
    assert found["chosen"]["estimator"] == "lstd"
    by_id = ictd.evaluate(CUSTOMERS, 0.98, id="customer", temperature=0.1, layers=8)
    assert len(by_id["rows"]) == 250
    asked = ictd.evaluate(CUSTOMERS, 0.98, query=CUSTOMERS.with_name("prospects.csv"), temperature=0.1, layers=8)
    assert "prospects" not in asked.text() and len(asked["rows"]) < 50
    with pytest.raises(InputError, match="options: unknown field `depth`"):
        ictd.evaluate(CUSTOMERS, 0.98, depth=3)
    assert ictd.evaluate(ictd.as_log(observed(True)), 0.9, estimator="lstd-lambda", lambda_=0.5)["chosen"]["lambda"] == 0.5


def test_minari_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari")
    gym = pytest.importorskip("gymnasium")
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    buffers = []
    for k, episode in enumerate(observed(True)):
        steps = len(episode["rewards"])
        seen = episode["observations"].astype(np.float64)
        buffers.append(
            EpisodeBuffer(
                id=k,
                observations=list(seen),
                actions=[0] * steps,
                rewards=list(episode["rewards"]),
                terminations=list(episode["terminations"]),
                truncations=[False] * (steps - 1) + [bool(episode["truncations"])],
            )
        )
    data = minari.create_dataset_from_buffers(
        dataset_id="walk/test-v0",
        buffer=buffers,
        observation_space=gym.spaces.Box(-np.inf, np.inf, (2,), np.float64),
        action_space=gym.spaces.Discrete(2),
    )
    np.testing.assert_allclose(values(ictd.as_log(data)), EXPECTED, rtol=1e-9)
    for path in ("walk/test-v0", tmp_path / "walk/test-v0"):
        np.testing.assert_allclose(values(ictd.read_log(path)), EXPECTED, rtol=1e-9)


def test_a_log_takes_whatever_estimators_take() -> None:
    plain = ictd.Log(X, Y, **REST)
    expected = ictd.LSTD(0.9).fit(plain).predict(X)
    names = [f"e{k:03}" for k in REST["episode"]]
    frame = pd.DataFrame(X, columns=["a", "b"])
    for log in (
        ictd.Log(X.tolist(), Y.tolist(), names, REST["terminated"].astype(bool)),
        ictd.Log(np.asfortranarray(X), Y.astype(object), np.array(names), REST["terminated"].tolist()),
        ictd.Log(frame, pd.Series(Y), pd.Series(names, dtype="string"), pd.Series(REST["terminated"])),
    ):
        np.testing.assert_array_equal(ictd.LSTD(0.9).fit(log).predict(X), expected)
        assert log.states.dtype == np.float64 and log.rewards.dtype == np.float64 and len(log) == len(X)
    assert ictd.Log(frame, Y).columns == ("a", "b")
    for labels in (["a", "b", "a"], np.array(["a", "b", "a"], object), pd.Series(["a", "b", "a"])):
        log = ictd.Log(labels, [1, 2, 3], [0, 0, 1], np.array([False, True, True]))
        assert log.is_label and ictd.LSTD(0.9).fit(log).predict(["a"]).shape == (1,)
    for given in ({"states": np.ones(3) / 3}, {"rewards": np.ones((2, 2))}, {"time": np.ones((2, 2))}, {"next_state": [[1j, 1j]]}):
        with pytest.raises(InputError):
            ictd.Log(**{"states": X[:2], "rewards": Y[:2], **given})


def test_targets_have_no_place_for_times_and_next_states() -> None:
    for name, given in (("time", np.arange(len(X))), ("next_state", X)):
        with pytest.raises(InputError, match=f"targets: the log has {name}"):
            _ = ictd.Log(X, Y, **REST, **{name: given}).targets


def test_what_frames_cannot_say_is_refused() -> None:
    twice = pd.DataFrame(X, columns=["a", "a"])
    for call in (lambda: ictd.LSTD(0.9).fit(twice, Y, **REST), lambda: ictd.as_log(twice)):
        with pytest.raises(InputError, match="two columns 'a', expected names that differ"):
            call()
    masked = np.ma.masked_array(X, mask=X > 2)
    for given in ({"X": masked}, {"y": np.ma.masked_array(Y, mask=Y > 0)}, {"episode": np.ma.masked_array(REST["episode"], mask=X[:, 0] > 0)}):
        name = next(iter(given))
        with pytest.raises(InputError, match=f"{name} has masked entries, expected none"):
            ictd.LSTD(0.9).fit(**{"X": X, "y": Y, **REST, **given})
    model = ictd.LSTD(0.9).fit(X, Y, **REST)
    with pytest.raises(InputError, match="X has masked entries"):
        model.predict(masked)
    with pytest.raises(InputError, match="too large"):
        model.predict([[10**400, 1]])


def test_missing_numbers_of_pandas_are_missing() -> None:
    gone = np.isnan(Y)
    objects = [pd.NA if lost else paid for lost, paid in zip(gone, Y, strict=True)]
    expected = ictd.LSTD(0.9).fit(X, Y, **REST).predict(X)
    for y in (np.array(objects, dtype=object), pd.Series(objects, dtype=object), pd.Series(objects, dtype="Float64")):
        np.testing.assert_array_equal(ictd.LSTD(0.9).fit(X, y, **REST).predict(X), expected)
    with pytest.raises(InputError, match="expected the name of an episode"):
        ictd.LSTD(0.9).fit(X, Y, episode=np.array([pd.NA, *REST["episode"][1:]], dtype=object), terminated=REST["terminated"])


def test_targets_keep_rewards_episodes_and_ends() -> None:
    made = ictd.targets([1, 2, 3], ["b", "a", "b"], [0, 0, 1], [False, True, False])
    np.testing.assert_array_equal(made, [[1, 1, 0], [2, 0, 2], [3, 1, 1]])
    assert np.isnan(ictd.targets([1.0])[:, 1:]).all()
    # Names that float64 cannot tell apart.
    for names in ([2**53, 2**53 + 1, 2**53], np.array([2**63, 2**63 + 1, 2**63], np.uint64), [-(2**62), 1 - 2**62, -(2**62)]):
        assert ictd.targets([1.0, 2.0, 3.0], names)[:, 1].tolist() == [0, 1, 0]
    for names in ([5.5, -1.0, 5.5], [True, False, True]):
        assert ictd.targets([1.0, 2.0, 3.0], names)[:, 1].tolist() == [1, 0, 1]
    large = REST | {"episode": REST["episode"] + 2**60}
    expected = ictd.LSTD(0.9).fit(X, Y, **REST).predict(X)
    np.testing.assert_array_equal(ictd.LSTD(0.9).fit(X, ictd.targets(Y, **large)).predict(X), expected)
    for given in ({"episode": [1]}, {"terminated": [1]}, {"terminated": [0.5, 1.0]}):
        with pytest.raises(InputError):
            ictd.targets([1.0, 2.0], **given)
    with pytest.raises(InputError, match="found beside targets"):
        ictd.LSTD(0.9).fit(X, ictd.targets(Y, **REST), **REST)


def test_a_pickle_has_the_log_as_it_was_fitted() -> None:
    log = ictd.Log(["a", "b"] * 8, [0.0, 1.0] * 8, episode=[f"e{k // 2}" for k in range(16)], terminated=[0, 1] * 8)
    model = ictd.LSTD(0.5).fit(log)
    before = pickle.dumps(model)
    for name in ("states", "episode"):
        kept = getattr(log, name)
        assert isinstance(kept, list)
        kept[:] = ["z"] * 16
    assert pickle.dumps(model) == before and pickle.loads(before).predict(["a", "b"]).tolist() == [0.5, 1.0]


def test_spans_of_time_of_any_unit_order_rows() -> None:
    pandas = pytest.importorskip("pandas")
    hours = np.arange(6)[::-1]
    X, y = np.arange(6.0)[::-1, None], np.arange(6.0)
    times: list[Any] = [hours.astype(f"timedelta64[{unit}]") for unit in ("D", "h", "s", "ms", "ns")]
    times += [pandas.period_range("2020-01", periods=6, freq="M")[::-1], pandas.Series(pandas.period_range("2020-01-01", periods=6, freq="D")[::-1])]
    for time in times:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RefusedWarning)
            model = ictd.MonteCarlo(1.0).fit(X, y, episode=np.zeros(6), time=time, terminated=[1, 0, 0, 0, 0, 0])
        assert model.predict(X).tolist() == [0.0, 1.0, 3.0, 6.0, 10.0, 15.0]


def test_an_estimator_with_an_array_shows_itself() -> None:
    assert repr(ictd.SoftmaxTD(np.array([0.9, 0.8]))) == "SoftmaxTD(gamma=array([0.9, 0.8]))"  # type: ignore[arg-type]
    assert repr(ictd.SoftmaxTD(0.9, temperature=np.array([1.0]))) == "SoftmaxTD(gamma=0.9, temperature=array([1.]))"  # type: ignore[arg-type]
