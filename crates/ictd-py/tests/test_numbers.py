"""Numbers of studies and of training against NumPy, from their definitions."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
from oracle import one, theta_star, trajectory, weights

import ictd
from ictd.errors import RefusedWarning


def by_difference(f, at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of f by every entry, by central differences."""
    found = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        moved = np.zeros_like(at)
        moved[index] = step
        found[index] = (f(at + moved) - f(at - moved)) / (2 * step)
    return found


def of_query(x, r, params, **words) -> float:
    """The value of the query after the last layer."""
    return float(one(x, r, params=params, **words)[0][-1, -1, -1])


class Cycle:
    """Three states in turn, as surely as random tasks can be: what training is shown is known."""

    def draw(self, seed, index):
        P = (1 - 1e-13) * np.roll(np.eye(3), 1, axis=1) + 1e-13 * np.eye(3)
        return ictd.Task(P, [1.0, -0.5, 0.3], 0.8, [[1.0, 0.2], [-0.4, 0.7], [0.3, -0.9]], [1.0, 0.0, 0.0])


def test_a_step_of_training_is_the_td_update():
    """θ ← θ + α·mean(δ ∇v̂) and the loss, the mean δ², over the three windows of a minibatch; δ from the shifted prompt."""
    words = {"seeds": 1, "epochs": 1, "batches": 1, "batch": 3, "n": 4, "layers": 2, "query": "next", "init__gain": 0.5, "optimizer__name": "sgd"}
    before = ictd.pretrain(task=Cycle(), optimizer__lr=1e-30, **words).checkpoint(0)
    run = ictd.pretrain(task=Cycle(), optimizer__lr=0.5, **words)
    after, task = run.checkpoint(0), Cycle().draw(0, 0)
    losses, by_V, by_A = [], np.zeros((5, 5)), np.zeros((5, 5))
    for start in range(3):
        states = [(start + k) % 3 for k in range(6)]
        x, r = task.features[states], task.rewards[states]
        value = lambda V, A, at: of_query(x[at : at + 5], r[at : at + 4], (V, A), depth=2, gamma=0.8, tau=1.2)  # noqa: E731, B023
        delta = r[4] + 0.8 * value(before.V, before.A, 1) - value(before.V, before.A, 0)
        losses.append(delta**2)
        by_V += delta / 3 * by_difference(lambda V: value(V, before.A, 0), before.V)  # noqa: B023
        by_A += delta / 3 * by_difference(lambda A: value(before.V, A, 0), before.A)  # noqa: B023
    # Trained are V's last row and A's feature block; training is in single precision.
    trained = np.zeros((2, 5, 5), bool)
    trained[0, -1], trained[1, :2, :2] = True, True
    np.testing.assert_allclose((after.V - before.V) / 0.5, by_V * trained[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose((after.A - before.A) / 0.5, by_A * trained[1], rtol=0, atol=1e-6)
    assert np.abs(by_V[-1]).max() > 0.1 and np.abs(by_A[:2, :2]).max() > 0.01
    np.testing.assert_allclose(run.curves()["td_loss"], [np.mean(losses)], rtol=1e-6)


def test_the_objective_is_the_norm_of_the_expected_update():
    """J = Σ_i |E[δ ∂v/∂θ_i]| over V's last three entries and A's one, all sequences of two states that are drawn evenly being known."""
    x, r, gamma, n, depth = np.array([[1.0], [-0.5]]), np.array([1.0, 0.2]), 0.9, 2, 2

    def value(theta, states):
        V, A = np.zeros((4, 4)), np.zeros((4, 4))
        V[-1, 1:], A[0, 0] = theta[:3], theta[3]
        return of_query(x[states], r[states[:-1]], (V, A), depth=depth, gamma=gamma)

    theta, expected = np.array([1.0, 1.0, -1.0, 1.0]), np.zeros(4)
    for states in itertools.product(range(2), repeat=n + 2):
        shown, after = list(states[:-1]), list(states[1:])
        delta = r[shown[-1]] + gamma * value(theta, after) - value(theta, shown)
        expected += delta * by_difference(lambda at: value(at, shown), theta) / 2 ** (n + 2)  # noqa: B023
    task = ictd.Task(np.full((2, 2), 0.5), r, gamma, x)
    point = ictd.neu(task, lengths=[n], layers=[depth], samples=20_000)["results"][0]["points"][0]
    # Noise has an absolute value too, which makes it too large.
    assert abs(point["neu"] - np.abs(expected).sum()) < 4 * point["sem"] + point["noise"] < 0.1 * point["neu"]


def test_bounds_are_their_formulas():
    gamma, n, delta = 0.2, 100, 0.1
    task = ictd.Task([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.4, 0.1, 0.5]], [1.0, -0.5, 0.2], gamma, [[1.2, 0.0], [0.0, 1.4], [-1.0, -0.9]])
    P, mu, x, v = task.P, task.stationary, task.features, task.values
    np.testing.assert_allclose([mu @ P - mu, task.rewards + gamma * P @ v - v], 0, atol=1e-12)

    def second(chain, law):
        reversed_ = (law[:, None] * chain).T / law[:, None]
        return np.sort(np.linalg.eigvals((chain + reversed_) / 2).real)[-2]

    pairs = list(itertools.product(range(3), repeat=2))
    of_pairs = np.array([[P[j, m] * (j == k) for k, m in pairs] for i, j in pairs])
    nu = np.array([mu[i] * P[i, j] for i, j in pairs])
    k = np.exp(x @ x.T)
    M = mu * k / (k @ mu)[:, None]
    margin, size, reach = M.diagonal().min() - (1 + gamma) / 2, np.abs(v).max(), np.linalg.norm(x, axis=1).max()
    found = ictd.bound(task, lengths=[n], contexts=4, delta=delta)["results"][0]
    expected = {
        "mu_min": mu.min(), "lambda_r": second(P, mu), "pair_mu_min": nu.min(), "pair_lambda_r": max(second(of_pairs, nu), 0),
        "feature_bound": reach, "reward_bound": 1.0, "value_bound": size, "margin": margin,
    }
    for name, number in expected.items():
        np.testing.assert_allclose(found["constants"][name], number, rtol=1e-9, err_msg=name)
    mixing = lambda second: (1 + max(second, 0)) / (1 - max(second, 0))  # noqa: E731
    lemma_4 = 3 * np.sqrt(mixing(second(P, mu)) / 2) * 2 * np.exp(4 * reach**2) * np.sqrt(np.log(6 / mu.min() / delta) / n)
    lemma_6 = 2 * gamma * size * np.sqrt(2 * mixing(second(of_pairs, nu))) * 3 * np.exp(2 * reach**2) * np.sqrt(np.log(12 / nu.min() / delta) / n)
    said = {(row["statement"].split(",")[0], row["layers"]): row["bound"] for row in found["comparisons"] if row["n"] == n}
    np.testing.assert_allclose(said["Lemma 4", None], lemma_4, rtol=1e-9)
    np.testing.assert_allclose(said["Lemma 6", None], lemma_6, rtol=1e-9)
    np.testing.assert_allclose(said["Theorem 2", 5], (1 - margin) ** 5 * size + lemma_6 / margin, rtol=1e-9)


def test_regimes_are_those_of_the_eigenvalues():
    family = ictd.Family("dense", states=3)
    task, seen = family.draw(0, 0), set()
    for cell in ictd.regimes(family, tasks=1)["cells"]:
        if cell["repair"] != "none":
            continue
        scores = cell["score_scale"] * task.features @ task.features.T
        M = task.stationary * np.exp(scores - scores.max(1, keepdims=True))
        M /= M.sum(1, keepdims=True)
        least = np.linalg.eigvals(M - cell["gamma"] * M @ task.P).real.min()
        assert cell["assumption"] == (M.diagonal().min() > (1 + cell["gamma"]) / 2), cell
        assert cell["unstable"] == (least < 0), cell
        seen |= {name for name in ("assumption", "provable", "in_fact", "unstable") if cell[name]}
    assert {"assumption", "provable"} <= seen


def test_a_certificates_norm_is_that_of_the_layer():
    """‖I − α(M − γP)‖∞ on one-hot features, where states are columns of attention."""
    states = np.random.default_rng(0).integers(0, 4, 60)
    x, r = np.eye(4)[states], np.random.default_rng(1).uniform(-1, 1, 59)
    sources = np.arange(60) < 59
    z = np.concatenate([x, np.zeros((60, 3))], 1).T
    for kernel, tau, gamma, alpha in (("softmax", 1.0, 0.9, 1.0), ("rbf", 0.2, 0.5, 0.7)):
        K = weights(kernel, z, theta_star(4)[1], sources, sources & False, tau=tau)[:59]
        J = np.eye(4)
        for u in range(4):
            column = int(np.flatnonzero(states == u)[0])
            np.subtract.at(J[u], states[:-1], alpha * K[:, column])
            np.add.at(J[u], states[1:], alpha * gamma * K[:, column])
        found = ictd.certify(x, r, kernel=kernel, temperature=tau, gamma=gamma, step_size=alpha)["contraction"]
        np.testing.assert_allclose([found["norm_inf"], found["spectral_radius"]], [np.abs(J).sum(1).max(), np.abs(np.linalg.eigvals(J)).max()], rtol=1e-9)


def test_reflected_td_is_its_formula():
    x, r = trajectory(3, n=7, d=2)
    K = np.exp(-x[:7] @ x.T / 0.7)
    K /= K.sum(0)
    values = [np.zeros(8)]
    for _ in range(4):
        v = values[-1]
        values.append(v + 0.5 * K.T @ (-r - 0.8 * v[1:] + v[:-1]))
    found = ictd.td.reflected_td(x, r, gamma=0.8, layers=4, step_size=0.5, temperature=0.7)
    np.testing.assert_allclose(found, values, rtol=0, atol=1e-12)


def test_intervals_hold_what_they_are_to_hold():
    """Of 60 logs of a process whose values are known; binomial chance of fewer than 102 of 120 at 95 % is below 1e-4."""
    P, reward, gamma, rng, held = np.array([[0.5, 0.3], [0.2, 0.6]]), np.array([1.0, -0.5]), 0.9, np.random.default_rng(0), 0
    value = np.linalg.solve(np.eye(2) - gamma * P, reward)  # what is missing to 1 in a row of P ends the episode
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefusedWarning)
        for _ in range(60):
            states, paid, episode, ends = [], [], [], []
            for number in range(40):
                state, alive = int(rng.integers(2)), True
                while alive:
                    after = int(np.searchsorted(np.cumsum(P[state]), rng.random()))
                    alive = after < 2
                    states.append(state)
                    paid.append(reward[state] + rng.normal())
                    episode.append(number)
                    ends.append(not alive)
                    state = after
            low, high = ictd.LSTD(gamma).fit(states, paid, episode=episode, terminated=ends).interval([0, 1]).T
            held += int(np.sum((low <= value) & (value <= high)))
    assert 102 <= held <= 120, held


def test_lemmas_have_their_bounds():
    task = ictd.Task(np.full((3, 3), 1 / 3), [2.0, -0.5, 0.2], 0.9, [[0.3, 0.1], [-0.2, 0.4], [0.5, -0.6]])
    rows = {row["lemma"]: row for row in ictd.lemmas(task, trials=20)["results"]}
    reach = np.linalg.norm(task.features, axis=1).max()
    kernel = rows["kernel bound"]
    np.testing.assert_allclose(kernel["bound"], 2 * ((2 + 3) * max(reach, 2.0)) ** 2, rtol=1e-12)
    wide, sharp = (row for name, row in rows.items() if name.startswith("softmax columns"))
    assert wide["measured"] == sharp["measured"] and np.isclose(wide["bound"], 2 * sharp["bound"])
    for row in rows.values():
        assert 0 < row["ratio"] <= 1 and np.isclose(row["ratio"], row["measured"] / row["bound"])
    # Nearly reached by two columns of two entries, as ‖softmax(h) − softmax(−h)‖₁ = 2·tanh(h) for h = (1, −1)·ε shows.
    assert sharp["ratio"] > 0.9
