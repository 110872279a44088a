"""Theory: the command line's JSON, figures and texts, threads that change nothing, callbacks and interrupts."""

import json
import pickle

import numpy as np
import pytest
from interrupts import ends_by_callback
from oracle import cli, trajectory, weights

import ictd
from ictd.errors import InputError, InputTypeError

X, R = trajectory(0, n=12, d=2, states=5)


def test_a_certificate_of_a_context_is_the_command_lines():
    context = ictd.Context(X, R)
    for options, words in [
        ({}, []),
        ({"gamma": 0.5, "kernel": "rbf", "temperature": 0.1}, ["--gamma", 0.5, "--kernel", "rbf", "--temperature", 0.1]),
        ({"unit_norm": True, "layers": 3, "attention": True}, ["--unit-norm", "--layers", 3, "--attention"]),
        ({"step_size": 0.5, "tolerance": 0.1}, ["--step-size", 0.5, "--tolerance", 0.1]),
    ]:
        said = cli("certify", "--input", "-", *words, text=context.to_json())
        assert dict(ictd.certify(X, R, **options)) == said == dict(ictd.certify(context, **options))
        assert ictd.certify(X, R, **options)["certifies"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, []),
        ({"task": "dense", "states": 5, "features": 3, "seed": 2, "index": 4}, ["--task", "dense", "--states", 5, "--features", 3, "--seed", 2, "--index", 4]),
        ({"task": "loop", "n": 50, "kernel": "tabular"}, ["--task", "loop", "--n", 50, "--kernel", "tabular"]),
        ({"tasks": 6, "states": 8, "score_scale": 3.0}, ["--tasks", 6, "--states", 8, "--score-scale", 3]),
    ],
)
def test_a_certificate_of_tasks_is_the_command_lines(options, words):
    for threads in (None, 1):
        assert dict(ictd.certify(threads=threads, **options)) == cli("certify", *words)


def test_a_certificate_is_about_the_right_matrix():
    """‖I − α(M − γP)‖ and its spectral radius from kernel weights, for one-hot features where states are columns of attention."""
    states = np.random.default_rng(0).integers(0, 4, 60)
    x, r = np.eye(4)[states], np.random.default_rng(1).uniform(-1, 1, 59)
    z = np.concatenate([x, np.zeros((60, 3))], 1).T
    A = np.diag([1.0] * 4 + [0, 0, 0])
    sources = np.arange(60) < 59
    K = weights("softmax", z, A, sources, sources & False)[:59]
    J = np.eye(4)
    for u in range(4):
        column = int(np.flatnonzero(states == u)[0])
        for k in range(59):
            J[u, states[k]] -= K[k, column]
            J[u, states[k + 1]] += 0.9 * K[k, column]
    found = ictd.certify(x, r)
    assert abs(found["contraction"]["spectral_radius"] - np.abs(np.linalg.eigvals(J)).max()) < 1e-9


def test_bounds_neu_regimes_lemmas_msve_and_verify_are_the_command_lines(tmp_path):
    def same(found, said):
        assert (found["results"] if isinstance(said, list) else dict(found)) == said
        assert found.text(70) and all(figure.svg().startswith("<svg") for figure in found.figures.values())

    out = ["--out", tmp_path / "cli"]
    same(
        ictd.bound("coin", lengths=[50, 100], contexts=8, delta=0.2, states=2, one_hot=True, seed=1),
        cli("bound", "--task", "coin", "--lengths", "50,100", "--contexts", 8, "--delta", 0.2, "--states", 2, "--one-hot", "--seed", 1, *out),
    )
    same(
        ictd.neu("dense", lengths=[10, 20], layers=[1, 2], samples=16, states=3),
        cli("neu", "--task", "dense", "--lengths", "10,20", "--layers", "1,2", "--samples", 16, "--states", 3, *out),
    )
    same(ictd.regimes("dense", tasks=1, states=3, seed=2), cli("regimes", "--task", "dense", "--tasks", 1, "--states", 3, "--seed", 2, *out))
    same(ictd.lemmas("dense", trials=20, states=3), cli("lemmas", "--task", "dense", "--trials", 20, "--states", 3))
    same(ictd.lemmas(trials=20), cli("lemmas", "--trials", 20))
    same(
        ictd.msve(tasks=6, lengths=[1, 9], layers=3, kernel="rbf", step_size=0.5, gamma=0.8),
        cli("msve", "--tasks", 6, "--lengths", "1,9", "--layers", 3, "--kernel", "rbf", "--step-size", 0.5, "--gamma", 0.8, *out),
    )
    same(ictd.msve(tasks=2, seed=3), cli("msve", "--tasks", 2, "--seed", 3, *out))
    same(
        ictd.verify(trials=2, layers=3, length=12, features=3, states=5, gamma=0.5, seed=4),
        cli("verify", "--trials", 2, "--layers", 3, "--length", 12, "--features", 3, "--states", 5, "--gamma", 0.5, "--seed", 4, *out),
    )


def test_errors_are_averaged_over_tasks_and_states():
    """Figure 1's error from its definition: one trajectory per task, its prefixes are contexts, every state is a query."""
    family, lengths, count = ictd.Family("boyan", states=6), [4, 30], 5
    expected = np.zeros((count, 2))
    for index in range(count):
        task = family.draw(3, index)
        states = task.sample(30, 3, index)[1]
        for k, n in enumerate(lengths):
            found = ictd.Transformer(0.9, layers=4).values(task.context(states[: n + 1], range(6)))[-1, -6:]
            expected[index, k] = task.stationary @ (found - task.values) ** 2
    points = ictd.msve(family, tasks=count, lengths=lengths, layers=4, seed=3)["points"]
    np.testing.assert_allclose([point["msve"] for point in points], expected.mean(0), rtol=1e-10)
    np.testing.assert_allclose([point["sem"] for point in points], expected.std(0, ddof=1) / np.sqrt(count), rtol=1e-10)


def test_neu_at_parameters_is_the_command_lines(tmp_path):
    ictd.circuit("td").save(tmp_path)
    file = tmp_path / "circuit.safetensors"
    found = ictd.neu(params=file, lengths=[20], samples=16)
    assert found["results"] == cli("neu", "--params", file, "--lengths", 20, "--samples", 16)
    block = ictd.Block.theta_star(4, gamma=0.9, layers=2)
    points = ictd.neu(params=block, lengths=20, samples=16)["results"]
    assert points[0]["neu"] == points[1]["neu"] and points[0]["layers"] == 2
    with pytest.raises(InputError, match="the parameters are for 3 features, the tasks have 4"):
        ictd.neu(params=ictd.Block.theta_star(3, gamma=0.9, layers=2), samples=16)


def test_certificates_of_parameters(tmp_path):
    V, A = ictd.Block.theta_star(2, gamma=0.9, layers=1).V, np.diag([2.0, 2.0, 0, 0, 0])
    sharp = ictd.certify(X, R, params=(V, A))
    scaled = ictd.certify(X * np.sqrt(2), R)
    assert abs(sharp["contraction"]["spectral_radius"] - scaled["contraction"]["spectral_radius"]) < 1e-9
    assert ictd.certify(X, R, params=ictd.Block(V, A, 0.5, 4))["gamma"] == 0.5
    params = tmp_path / "params.json"
    params.write_text(json.dumps({"V": V.tolist(), "A": A.tolist()}))
    assert dict(ictd.certify(X, R, params=params)) == dict(sharp)
    with pytest.raises(InputError, match="expected one V and A for all layers"):
        ictd.certify(X, R, params=ictd.Block(np.stack([V] * 2), np.stack([A] * 2), 0.5, 2))


def test_threads_change_nothing():
    for study in (
        lambda **k: ictd.certify(tasks=8, states=8, **k),
        lambda **k: ictd.msve(tasks=8, lengths=[3, 9], **k),
        lambda **k: ictd.lemmas("dense", trials=10, states=3, **k),
    ):
        assert dict(study(threads=1)) == dict(study(threads=2)) == dict(study())


def test_callbacks_are_told_and_may_end_the_work():
    standing = ends_by_callback(lambda enough: ictd.msve(tasks=1_000_000, callback=enough))
    assert standing["unit"] and standing["total"] >= standing["done"] >= 0


def test_results_are_dictionaries_that_are_kept(tmp_path):
    found = ictd.certify(X, R)
    assert json.loads(json.dumps(found)) == dict(found) == pickle.loads(pickle.dumps(found))
    found.save(tmp_path)
    assert any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ictd.certify(X), InputTypeError, "rewards: missing"),
        (lambda: ictd.certify(None, R), InputError, "features: missing"),
        (lambda: ictd.certify(X, R, task="boyan"), InputError, "task: found beside a context"),
        (lambda: ictd.certify(X, R, states=4), InputError, "states: found beside a context"),
        (lambda: ictd.certify(tasks=3, n=4), InputError, "n: found beside tasks"),
        (lambda: ictd.certify(X, R, kernel="x"), InputError, "kernel is 'x'"),
        (lambda: ictd.certify(X, R, gamma=1.0), InputError, "gamma is 1"),
        (lambda: ictd.certify(X, R, step_size=-1.0), InputError, "step-size is -1"),
        (lambda: ictd.certify(X * np.nan, R), InputError, "NaN"),
        (lambda: ictd.certify(episode=[1]), InputError, "features: missing, expected beside episode"),
        (lambda: ictd.bound(delta=2.0), InputError, "delta is 2, expected 0 < delta < 1"),
        (lambda: ictd.bound(contexts=1), InputError, "contexts is 1"),
        (lambda: ictd.neu(samples=1), InputError, "samples"),
        (lambda: ictd.neu(lengths=[]), InputError, "expected at least one each"),
        (lambda: ictd.regimes(tasks=0), InputError, "tasks is 0"),
        (lambda: ictd.regimes(task=ictd.Family("dense"), states=0), InputError, "states is 0"),
        (lambda: ictd.lemmas(trials=0), InputError, "trials is 0, expected 1 to 1000000"),
        (lambda: ictd.msve(tasks=1), InputError, "tasks is 1, expected at least 2"),
        (lambda: ictd.msve(lengths=[0, 3]), InputError, "lengths"),
        (lambda: ictd.msve(threads=0), InputError, "threads is 0"),
        (lambda: ictd.verify(gamma=1.5), InputError, "gamma"),
        (lambda: ictd.verify(trials=2.5), InputTypeError, "trials is of type float"),
        (lambda: ictd.msve("nothing"), InputError, "task is 'nothing', expected boyan"),
        (lambda: ictd.msve(ictd.Family("cartpole"), tasks=3), InputError, "not known, expected tasks with finitely many states"),
    ],
)
def test_mistakes_are_said(call, error, text):
    with pytest.raises(error, match=text):
        call()
