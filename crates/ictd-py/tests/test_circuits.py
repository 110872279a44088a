"""Circuits: their matrices do what their cards say."""

import copy
import json
import pickle

import numpy as np
import pytest
from oracle import cli, layers, prompt

import ictd
from ictd.errors import InputError

BLOCKS = ["td", "mirror"]
LINEAR = ["td-linear", "residual-gradient", "monte-carlo", "lstd"]


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_reproduce_their_cards(name):
    found = ictd.circuit(name, features=3, layers=3, gamma=0.7, step_size=0.5, seed=4)
    example = found["example"]
    x, r = np.array(example["features"]), np.array(example["rewards"])
    sources = np.arange(len(x)) < len(r)
    block = found.block
    tokens, _ = layers(prompt(x, r, sources), block.V, block.A, sources, sources & False, gamma=0.7, depth=3, alpha=0.5)
    np.testing.assert_allclose(tokens, example["tokens"], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.prompt(x, r), tokens[0])
    np.testing.assert_allclose(ictd.forward(x, r, gamma=0.7, params=block)[:, -1], example["query_values"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LINEAR)
def test_linear_circuits_reproduce_their_cards(name):
    found = ictd.circuit(name, features=2)
    example, P, Q = found["example"], found.arrays["P"], found.arrays["Q"]
    z = found.prompt(np.array(example["features"]), np.array(example["rewards"]))
    n = len(example["rewards"])
    M = np.diag([1.0] * n + [0.0])
    for layer, alpha in enumerate(found["step_sizes"]):
        np.testing.assert_allclose(z, example["tokens"][layer], rtol=0, atol=1e-9)
        z = z + alpha / n * P @ z @ M @ z.T @ Q @ z
    assert found.block.block == "linear" and found["value_sign"] == -1


@pytest.mark.parametrize("name", BLOCKS + LINEAR)
def test_it_is_what_the_command_line_gives(name, tmp_path):
    found = ictd.circuit(name, features=2, seed=3)
    assert found.card == cli("circuit", name, "--features", 2, "--seed", 3, "--out", tmp_path / "cli")
    found.save(tmp_path / "python")
    for file in ("circuit.safetensors", "card.json", "circuit.py"):
        assert (tmp_path / "cli" / file).read_bytes() == (tmp_path / "python" / file).read_bytes()
    assert json.loads((tmp_path / "python" / "card.json").read_text()) == found.card


def test_a_trained_circuit_is_what_its_parameters_say():
    rng = np.random.default_rng(0)
    V, A = rng.normal(size=(2, 5, 5)).astype(np.float32), rng.normal(size=(2, 5, 5)).astype(np.float32)
    block = ictd.Block(V, A, 0.8, 2, kernel="rbf", temperature=3.0, step_size=0.01)
    found = ictd.circuit("trained", params=block)
    assert found.block == block and found["kernel"] == "rbf"


@pytest.mark.parametrize("name", BLOCKS + LINEAR)
def test_circuits_are_copied_and_pickled(name, tmp_path):
    found = ictd.circuit(name, features=2)
    x, r = np.array(found["example"]["features"]), np.array(found["example"]["rewards"])
    for again in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert type(again) is ictd.Circuit and again.card == found.card and again.block == found.block
        np.testing.assert_array_equal(again.prompt(x, r), found.prompt(x, r))
    assert copy.deepcopy(found).text() == found.text()
    kept = pickle.loads(pickle.dumps(found))
    assert repr(kept) == f"<circuit {name}>" and repr(found) == found.text()
    with pytest.raises(InputError, match="was pickled"):
        kept.save(tmp_path)


def test_mistakes_are_said():
    assert set(ictd.circuits) == {*BLOCKS, *LINEAR, "trained"}
    for text, name, words in [
        ("circuit is 'x', expected one of td", "x", {}),
        ("params: missing", "trained", {}),
        ("features is 100, expected 1 to 64", "td", {"features": 100}),
        ("params: found beside td", "td", {"params": ictd.Block.theta_star(2, gamma=0.9, layers=2)}),
    ]:
        with pytest.raises(InputError, match=text):
            ictd.circuit(name, **words)
    steps = ictd.Block.theta_star(2, gamma=0.9, layers=2, step_size=(1.0, 0.5))
    with pytest.raises(InputError, match="expected one for all layers"):
        ictd.circuit("trained", params=steps)
