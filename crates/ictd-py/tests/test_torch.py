"""Blocks in PyTorch: the library's values, tokens, attention and gradients; skipped where PyTorch is not installed."""

import copy
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from oracle import KERNELS, trajectory

import ictd
from ictd.errors import InputError, InputTypeError

torch = pytest.importorskip("torch")
CLOSE = {"rtol": 0, "atol": 1e-12}
X, R = trajectory(0, n=9, d=3, states=6)


def of_one_size(seed=0, tied=True, looped=False):
    rng = np.random.default_rng(seed)
    shape = (6, 6) if tied else (4, 6, 6)
    V, A = 0.3 * rng.normal(size=shape), 0.3 * rng.normal(size=shape)
    if looped:
        V[..., :-1, :], A[..., 3:, :], A[..., :, 3:] = 0, 0, 0
    return V, A


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("block", ["tsm", "dual"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_modules_are_the_library(kernel, block, tied):
    context = ictd.Context.from_episodes([(X, R, True), (X[:4], R[:3])], queries=X[:2])
    sizes = (0.5, 0.4, 0.3, 0.2)
    words = {"kernel": kernel, "temperature": 1.7, "block": block, "diagonal_mix": 0.2, "layers": 4, "step_size": sizes}
    for params in (None, of_one_size(tied=tied)):
        made = ictd.Transformer(0.8, params=params, **words)
        module = ictd.to_torch(made, features=3)
        for z in (context, ictd.Context(X, R)):
            np.testing.assert_allclose(module(z).detach(), made.values(z), **CLOSE)
            np.testing.assert_allclose(module.tokens(z).detach(), made.tokens(z), **CLOSE)
            np.testing.assert_allclose(module.attention(z).detach(), made.attention(z), **CLOSE)
        expected = made.values(ictd.Context(X, R))
        np.testing.assert_allclose(module(X, R).detach(), expected, **CLOSE)
        np.testing.assert_allclose(module(made.tokens(ictd.Context(X, R))[0]).detach(), expected, **CLOSE)
        single = ictd.to_torch(made.as_block(3), dtype=torch.float32)
        np.testing.assert_allclose(single(X, R).detach(), expected, rtol=0, atol=1e-5)
        assert single.V.dtype == torch.float32


def test_batches_are_their_prompts():
    module = ictd.to_torch(ictd.Transformer(0.9, layers=3, params=of_one_size(looped=True)))
    pairs = [trajectory(k, n=7, d=3) for k in range(4)]
    x, r = (np.stack(parts) for parts in zip(*pairs, strict=True))
    found = module(x, r).detach()
    assert found.shape == (4, 4, 8) and module.attention(x, r).shape == (4, 3, 8, 8)
    for k, pair in enumerate(pairs):
        np.testing.assert_allclose(found[k], module(*pair).detach(), **CLOSE)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kernel", ["softmax", "relu", "elu1", "rbf", "linear"])
def test_gradients_are_the_librarys(kernel, tied):
    params = of_one_size(1, tied, looped=True)
    context = ictd.Context.from_episodes([(X, R, True), (X[:4], R[:3])], queries=X[:2])
    w = np.random.default_rng(2).normal(size=context.num_columns)
    made = ictd.Transformer(0.8, kernel, layers=4, params=params, diagonal_mix=0.1)
    for layer in (4, 3):
        module = ictd.to_torch(made)
        (module(context)[layer] @ torch.tensor(w)).backward()
        row, block = made.gradient(context, layer, w)
        np.testing.assert_allclose(module.V.grad[..., -1, :], row, rtol=0, atol=1e-10)
        np.testing.assert_allclose(module.A.grad[..., :3, :3], block, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ictd.circuits)
def test_modules_of_circuits_can_be_saved(name, tmp_path):
    params = ictd.Block.theta_star(2, gamma=0.9, layers=2) if name == "trained" else None
    module = ictd.to_torch(ictd.circuit(name, features=None if params else 2, params=params))
    torch.save(module, tmp_path / "module.pt")
    x, r = trajectory(0, n=6, d=2)
    expected = module(x, r).detach()
    for again in (torch.load(tmp_path / "module.pt", weights_only=False), pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        np.testing.assert_array_equal(again(x, r).detach(), expected)


@pytest.mark.parametrize("name", [name for name in ictd.circuits if name != "trained"])
def test_circuits_reproduce_their_cards(name):
    circuit = ictd.circuit(name, features=2)
    module, example = ictd.to_torch(circuit), circuit["example"]
    found = module(np.array(example["features"]), np.array(example["rewards"]))[:, -1]
    np.testing.assert_allclose(found.detach(), example["query_values"], rtol=0, atol=1e-12 if name != "lstd" else 1e-9)
    assert module.attention(np.array(example["features"]), np.array(example["rewards"])).shape[0] == circuit["layers"]


def test_hooks_see_attention():
    made = ictd.Transformer(0.9, layers=2)
    module, seen = ictd.to_torch(made, features=3), []
    for layer in module.layers:
        layer.attention.register_forward_hook(lambda _, __, output: seen.append(output))
    module(X, R)
    np.testing.assert_allclose(torch.stack(seen).detach(), made.attention(ictd.Context(X, R)), **CLOSE)


def test_anything_with_the_attributes_of_a_block_is_one():
    V, A = of_one_size()
    words = {"kernel": "rbf", "temperature": 2.0, "gamma": 0.9, "layers": 2, "step_size": 1.0, "block": "tsm", "diagonal_mix": 0.0}
    checkpoint = SimpleNamespace(V=V.astype(np.float32), A=A.astype(np.float32), **words)
    expected = ictd.forward(X, R, gamma=0.9, params=checkpoint)
    np.testing.assert_allclose(ictd.to_torch(checkpoint)(X, R).detach(), expected, **CLOSE)
    with pytest.raises(InputTypeError, match="without V, A"):
        ictd.to_torch(3)


def test_modules_are_kept_and_trained():
    module = ictd.to_torch(ictd.Transformer(0.9, layers=2), features=3)
    again = pickle.loads(pickle.dumps(module))
    assert torch.equal(again(X, R), module(X, R)) and set(module.state_dict()) == {"V", "A"}
    before = module(X, R)[-1, -1].item()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    (-module(X, R)[-1, -1]).backward()
    optimizer.step()
    assert module(X, R)[-1, -1].item() > before


def test_mistakes_are_said():
    with pytest.raises(InputError, match="features: missing"):
        ictd.to_torch(ictd.Transformer(0.9))
    with pytest.raises(InputError, match="features have shape"):
        ictd.to_torch(ictd.Transformer(0.9), features=3)(X[:, :2], R)
    with pytest.raises(InputError, match="features: expected beside a Transformer alone"):
        ictd.to_torch(ictd.Block.theta_star(3, gamma=0.9, layers=1), features=3)


def test_without_pytorch_the_message_is_clear(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install torch"):
        ictd.to_torch(ictd.Transformer(0.9), features=3)
    assert "torch" in sys.modules
