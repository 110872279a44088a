"""Constructions in linear attention: against their algorithms and the command line."""

import json

import numpy as np
import pytest
from oracle import cli, trajectory

import ictd
from ictd.errors import InputError

X, R = trajectory(0, n=12, d=3)
DIRECT = {
    "td": ictd.td.linear_td,
    "td-lambda": lambda *a, **k: ictd.td.lambda_td(*a, lam=0.4, **k),
    "residual-gradient": ictd.td.residual_gradient_td,
    "average-reward": lambda *a, gamma, **k: ictd.td.average_reward_td(*a, **k),
    "monte-carlo": ictd.td.monte_carlo_regression,
    "sarsa": ictd.td.linear_td,
    "chain-of-thought": ictd.td.linear_td,
}


@pytest.mark.parametrize("name", DIRECT)
def test_layers_are_iterations(name):
    words = {"layers": 8, "step_size": [0.5, 0.4, 0.3, 0.2, 0.5, 0.4, 0.3, 0.2]}
    lam = {"lam": 0.4} if name == "td-lambda" else {}
    gamma = 1.0 if name == "average-reward" else 0.8
    found = ictd.construct(name, X, R, gamma=gamma, tokens=True, **words, **lam)
    direct = DIRECT[name](X, R, gamma=gamma if gamma < 1 else 0.0, **words)
    np.testing.assert_allclose(found["query_values"], direct[:, -1], rtol=0, atol=1e-12)
    assert len(found["tokens"]) == 9 and len(found["row_names"]) == len(found["tokens"][0])


def test_td_is_linear_attention():
    """Z ← Z + (α/n)·P Z M Zᵀ Q Z on columns (x_k, γ x_{k+1}, R_k), written out."""
    n, d, gamma, alpha = 12, 3, 0.8, 0.7
    z = np.zeros((2 * d + 1, n + 1))
    z[:d], z[d : 2 * d, :n], z[-1, :n] = X.T, gamma * X[1:].T, R
    z[:d, n], z[d : 2 * d, n] = X[n], 0
    P, Q, M = np.zeros((7, 7)), np.zeros((7, 7)), np.diag([1.0] * n + [0.0])
    P[-1, -1] = 1
    Q[:d, :d], Q[:d, d : 2 * d] = -np.eye(d), np.eye(d)
    found = ictd.construct("td", X, R, gamma=gamma, layers=5, step_size=alpha, tokens=True)
    for layer in range(6):
        np.testing.assert_allclose(found["tokens"][layer], z, rtol=0, atol=1e-12)
        assert abs(found["query_values"][layer] + z[-1, -1]) < 1e-12
        z = z + alpha / n * P @ z @ M @ z.T @ Q @ z


@pytest.mark.parametrize("name", DIRECT)
def test_it_is_what_the_command_line_gives(name):
    text = json.dumps({"features": X.tolist(), "rewards": R.tolist()})
    words = ["--layers", 6, "--step-size", 0.4, "--tokens"]
    found = ictd.construct(name, X, R, layers=6, step_size=0.4, tokens=True)
    assert dict(found) == cli("forward", "--input", "-", "--construction", name, *words, text=text)
    assert found.text(80) and found.tables and found.figures


def test_the_limit_is_that_of_least_squares():
    found = ictd.construct("td", X, R, gamma=0.8, layers=5)
    assert abs(found["limit"] - ictd.td.least_squares_td(X, R, gamma=0.8) @ X[-1]) < 1e-9


def test_mistakes_are_said():
    assert ictd.algorithms == tuple(DIRECT)
    for text, name, words in [
        ("construction is 'q', expected td", "q", {}),
        ("lambda is 0.5, expected none: td has no traces", "td", {"lam": 0.5}),
        ("gamma is 0.5, expected 1", "average-reward", {"gamma": 0.5}),
        ("lambda is 1.5", "td-lambda", {"lam": 1.5}),
        ("step sizes: 3 given", "td", {"step_size": [1, 2, 3]}),
    ]:
        with pytest.raises(InputError, match=text):
            ictd.construct(name, X, R, **words)
    with pytest.raises(InputError, match="expected none: the last row of the trajectory is the query"):
        ictd.construct("td", ictd.Context(X, R, queries=X))
    with pytest.raises(InputError, match="expected one trajectory"):
        ictd.construct("td", ictd.Context.from_episodes([(X, R), (X, R)]))
