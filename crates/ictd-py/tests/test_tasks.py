"""Tasks and families: exact values against NumPy, files against the command line, one's own where tasks are taken."""

import copy
import json
import pickle

import numpy as np
import pytest
from oracle import cli

import ictd
from ictd.errors import FileError, InputError, InputTypeError

CLOSE = {"rtol": 0, "atol": 1e-12}


def chain(seed, m=5, d=3):
    rng = np.random.default_rng(seed)
    P = rng.uniform(size=(m, m))
    return P / P.sum(1, keepdims=True), rng.uniform(-1, 1, m), 0.8, rng.uniform(-1, 1, (m, d))


def test_what_is_known_exactly_is_right():
    for seed in range(5):
        P, r, gamma, x = chain(seed)
        task = ictd.Task(P, r, gamma, x)
        np.testing.assert_allclose(task.values, np.linalg.solve(np.eye(5) - gamma * P, r), **CLOSE)
        np.testing.assert_allclose(task.stationary @ P, task.stationary, **CLOSE)
        assert abs(task.stationary.sum() - 1) < 1e-12 and task.num_states == 5
        np.testing.assert_array_equal(task.initial, np.full(5, 0.2))
        moduli = np.sort(np.abs(np.linalg.eigvals(P)))[::-1]
        np.testing.assert_allclose(np.abs(task.eigenvalues), moduli, rtol=0, atol=1e-10)
        mu = task.stationary
        star = (P * mu[:, None]).T / mu[:, None]
        expected = np.sort(np.linalg.eigvals((P + star) / 2).real)[::-1]
        np.testing.assert_allclose(task.spectrum, expected, rtol=0, atol=1e-10)
        pairs = np.zeros((25, 25))
        for s, t, u in np.ndindex(5, 5, 5):
            pairs[5 * s + t, 5 * t + u] = P[t, u]
        law = (mu[:, None] * P).ravel()
        back = (pairs * law[:, None]).T / law[:, None]
        second = np.sort(np.linalg.eigvals((pairs + back) / 2).real)[::-1][1]
        assert abs(task.pair_lambda_r - max(second, 0)) < 1e-9


def test_arrays_are_frozen_and_tasks_are_kept():
    task = ictd.Task(*chain(0), initial=[1, 0, 0, 0, 0])
    for name in ("P", "rewards", "initial", "features", "values", "stationary"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(task, name)[0] = 0
    with pytest.raises(AttributeError):
        task.values = 3
    for again in (pickle.loads(pickle.dumps(task)), copy.deepcopy(task), ictd.Task.from_json(task.to_json())):
        assert again == task
    family = ictd.Family("loop", states=6, representable=False, threshold=0.3)
    assert pickle.loads(pickle.dumps(family)) == family and family.keys["states"] == 6 and not family.keys["representable"]
    drawn = family.draw(1)
    assert pickle.loads(pickle.dumps(drawn)) == drawn


def test_samples_follow_the_process():
    task = ictd.Task(*chain(1))
    context, states = task.sample(20_000, seed=3)
    assert context.num_transitions == 20_000 and states.shape == (20_001,)
    np.testing.assert_array_equal(context.features, task.features[states])
    np.testing.assert_array_equal(context.rewards[:-1], task.rewards[states[:-1]])
    counts = np.zeros((5, 5))
    np.add.at(counts, (states[:-1], states[1:]), 1)
    # Six standard errors of a share of at least 1/2·1000.
    assert np.abs(counts / counts.sum(1, keepdims=True) - task.P).max() < 0.06
    assert not np.array_equal(task.sample(30, 3)[1], task.sample(30, 3, 1)[1])
    np.testing.assert_array_equal(task.sample(30, 3)[1], states[:31])
    path = task.context([0, 1, 2], queries=[4])
    np.testing.assert_array_equal(path.features, task.features[[0, 1, 2, 4]])


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("boyan", {}, []),
        ("boyan", {"states": 8, "representable": False}, ["--states", 8, "--free"]),
        ("loop", {"threshold": 0.2, "gamma": 0.5}, ["--threshold", 0.2, "--gamma", 0.5]),
        ("figure-1", {}, []),
        ("dense", {"one_hot": True, "score_scale": 8.0}, ["--one-hot", "--score-scale", 8]),
        ("coin", {"unit_norm": True}, ["--unit-norm"]),
    ],
)
def test_tasks_are_those_of_the_command_line(name, options, words, tmp_path):
    said = cli("task", name, "--seed", 2, "--index", 3, *words)
    task = ictd.task(name, seed=2, index=3, **options)
    assert json.loads(task.to_json()) == said
    assert ictd.Family(name, **options).draw(2, 3) == task == ictd.Task.from_json(json.dumps(said))
    file = tmp_path / "task.json"
    file.write_text(json.dumps(said))
    assert ictd.Task.read(file) == task == ictd.task(file)
    walk = cli("task", name, "--seed", 2, "--index", 3, "--trajectory", 20, *words)
    context, states = task.sample(20, 2, 3)
    assert states.tolist() == walk["states"] and context.features.tolist() == walk["features"]


class Wrapped:
    """A family of one's own, which draws as a built-in one."""

    def __init__(self, **options):
        self.family = ictd.Family("dense", states=4, one_hot=True, gamma=0.7, score_scale=4.0, **options)

    def draw(self, seed, index):
        return self.family.draw(seed, index)


class Broken(Wrapped):
    def draw(self, seed, index):
        if index == 5:
            raise KeyError("lost")
        return super().draw(seed, index)


class Growing:
    def draw(self, seed, index):
        return ictd.Family("dense", states=3 + index).draw(seed, index)


class Other(Growing):
    def draw(self, seed, index):
        return ictd.Family("dense", features=3 + index).draw(seed, index)


def test_own_families_are_used_as_built_in_ones():
    own = Wrapped()
    assert isinstance(own, ictd.TaskSource) and isinstance(own.family, ictd.TaskSource) and isinstance(own.draw(0, 0), ictd.TaskSource)
    assert dict(ictd.certify(task=own, tasks=20, threads=2)) == dict(ictd.certify(task=own.family, tasks=20))
    ours, theirs = (dict(ictd.certify(task=source, index=3, seed=5)) for source in (own, own.family))
    assert ours.pop("subject") != theirs.pop("subject") and ours == theirs
    ours, theirs = (dict(ictd.msve(source, tasks=20, lengths=[5, 50], threads=2)) for source in (own, own.family))
    assert ours.pop("config") != theirs.pop("config")
    np.testing.assert_allclose([p["msve"] for p in ours["points"]], [p["msve"] for p in theirs["points"]], rtol=1e-9)
    one = own.draw(0, 0)
    assert ictd.certify(task=one)["contraction"] == ictd.certify(task=own)["contraction"]
    assert ictd.certify(task=one, unit_norm=True)["status"]


def test_what_own_families_raise_is_raised():
    with pytest.raises(KeyError, match="lost"):
        ictd.certify(task=Broken(), tasks=20, threads=2)
    assert ictd.certify(task=Growing(), tasks=2)["tasks"] == 2
    with pytest.raises(InputError, match="task 1 of seed 0 has 4 features and gamma 0.9, expected 3 and 0.9 as task 0 of seed 0"):
        ictd.certify(task=Other(), tasks=2)
    with pytest.raises(InputTypeError, match="task is int, expected the name of a family"):
        ictd.certify(task=3)
    with pytest.raises(InputTypeError, match="draw returned int without gamma"):
        ictd.certify(task=type("Wrong", (), {"draw": lambda self, seed, index: 3})())


def test_mistakes_are_said(tmp_path):
    P, r, gamma, x = chain(0)
    for text, parts in [
        ("row 0 sums to 2, expected 1", (2 * P, r, gamma, x)),
        ("rewards has 4 entries, expected one for each of the 5 states", (P, r[:4], gamma, x)),
        ("gamma is 1.0", (P, r, 1.0, x)),
        ("features are 4×3", (P, r, gamma, x[:4])),
        ("initial distribution", (P, r, gamma, x, [1, 1, 0, 0, 0])),
        ("not ergodic", (np.eye(5), r, gamma, x)),
        ("reward of state 0 is NaN", (P, r * np.nan, gamma, x)),
        ("expected two dimensions", (P[0], r, gamma, x)),
    ]:
        with pytest.raises(InputError, match=text):
            ictd.Task(*parts)
    task = ictd.Task(P, r, gamma, x)
    for text, call in [
        ("n is 0, expected 1", lambda: task.sample(0, 0)),
        ("seed is -1, expected a whole number", lambda: task.sample(3, -1)),
        ("states: entry 1 is 9, expected 0 to 4", lambda: task.context([0, 9])),
        ("states: found 1, expected two at least", lambda: task.context([0])),
        ("task is 'boian'", lambda: ictd.Family("boian")),
        ("task is 'boian', expected .* did you mean|task is 'boian', expected", lambda: ictd.task("boian")),
        ("threshold: has no meaning for this kind of task", lambda: ictd.Family("boyan", threshold=0.1)),
        ("states is 1, expected 3 to 5000", lambda: ictd.Family("boyan", states=1)),
        ("expected one of one-hot, unit-norm and continuous", lambda: ictd.Family("dense", one_hot=True, unit_norm=True)),
        ("not known, expected tasks with finitely many states", lambda: ictd.Family("cartpole").draw(0)),
        ("expected a JSON object", lambda: ictd.Task.from_json("3")),
        ("gamma: missing", lambda: ictd.Task.from_json("{}")),
    ]:
        with pytest.raises(InputError, match=text):
            call()
    with pytest.raises(FileError):
        ictd.Task.read(tmp_path / "nothing.json")
    assert ictd.families == ("boyan", "loop", "figure-1", "dense", "coin", "cartpole")


def test_values_of_other_types_are_refused_by_name():
    task = ictd.Task(*chain(0))
    for text, call in [
        ("one_hot is of type int, expected true or false", lambda: ictd.Family("dense", one_hot=3)),
        ("representable is of type str", lambda: ictd.Family("dense", representable="no")),
        ("states is of type str", lambda: ictd.Family("dense", states="many")),
        ("states is of type float", lambda: task.context([0.5, 1])),
        ("V: .*, expected numbers", lambda: ictd.Block("x", np.eye(4), 0.9, 2)),
        ("layers is of type NoneType", lambda: ictd.Block(np.eye(4), np.eye(4), 0.9, None)),
        ("step_size: .*, expected numbers", lambda: ictd.Block(np.eye(4), np.eye(4), 0.9, 2, step_size="x")),
        ("episode 0 is of type str", lambda: ictd.Context.from_episodes("x")),
        ("expected ictd.Context", lambda: ictd.Transformer(0.9).gradient(None)),
    ]:
        with pytest.raises(InputTypeError, match=text):
            call()
    assert ictd.msve(ictd.Family("dense", states=np.int64(3)), tasks=np.int32(2), lengths=np.array([1, 5]))["points"]
