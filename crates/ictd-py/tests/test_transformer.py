"""Transformers, kernels and algorithms: every layer against NumPy, gradients against finite differences."""

import copy
import pickle

import numpy as np
import pytest
from oracle import KERNELS, layers, one, prompt, theta_star, trajectory, weights

import ictd
from ictd.errors import InputError, InputTypeError

CLOSE = {"rtol": 0, "atol": 1e-12}
X, R = trajectory(0, n=8, d=3)
Y, Q = trajectory(1, n=4, d=3)


def context():
    return ictd.Context.from_episodes([(X, R, True), (Y, Q)], queries=Y[:2])


def masks(of):
    roles = np.array(of.roles)
    return roles == "source", roles == "terminal"


@pytest.mark.parametrize("block", ["tsm", "dual"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_layer_is_the_formulas(kernel, block):
    of = context()
    sources, terminal = masks(of)
    rng = np.random.default_rng(0)
    V, A = 0.3 * rng.normal(size=(3, 6, 6)), 0.3 * rng.normal(size=(3, 6, 6))
    for params in (None, (V, A), (V[0], A[0])):
        given = theta_star(3) if params is None else params
        z = prompt(of.features, np.concatenate([R, Q]), sources)
        words = {"gamma": 0.8, "kernel": kernel, "block": block}
        tokens, attention = layers(z, *given, sources, terminal, depth=3, tau=1.3, rho=0.2, alpha=0.7, **words)
        made = ictd.Transformer(temperature=1.3, layers=3, step_size=0.7, diagonal_mix=0.2, params=params, **words)
        np.testing.assert_allclose(made.tokens(of), tokens, **CLOSE)
        np.testing.assert_allclose(made.attention(of), attention, **CLOSE)
        np.testing.assert_allclose(made.values(of), tokens[:, -1], **CLOSE)
        np.testing.assert_allclose(made.targets(of), tokens[:, -2], **CLOSE)
        v = tokens[:, -1]
        expected = np.concatenate([R, Q]) + 0.8 * v[:, of.sources + 1] - v[:, of.sources]
        np.testing.assert_allclose(made.td_errors(of), expected, **CLOSE)
        assert made.layers == 3 and made.kernel == kernel and made.temperature == 1.3 and made.block == block


def test_no_layers_are_layers_too():
    none = ictd.Transformer(0.9, layers=0)
    assert none.attention(context()).shape == (0, 16, 16) and none.tokens(context()).shape == (1, 6, 16)


def test_long_contexts_are_the_same():
    x, r = trajectory(3, n=500, d=2)
    made = ictd.Transformer(0.9, layers=2)
    tokens, attention = one(x, r, gamma=0.9, depth=2)
    for threads in (None, 2):
        np.testing.assert_allclose(made.tokens(ictd.Context(x, r), threads=threads), tokens, **CLOSE)
        np.testing.assert_allclose(made.attention(ictd.Context(x, r), threads=threads), attention, **CLOSE)
        np.testing.assert_allclose(made.targets(ictd.Context(x, r), threads=threads), tokens[:, -2], **CLOSE)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kernel", ["softmax", "relu", "elu1", "rbf", "linear"])
def test_gradients_are_those_of_finite_differences(kernel, tied):
    rng, of = np.random.default_rng(1), context()
    shape = (6, 6) if tied else (3, 6, 6)
    V, A = np.zeros(shape), np.zeros(shape)
    V[..., -1, :] = 0.4 * rng.normal(size=V[..., -1, :].shape)
    A[..., :3, :3] = np.eye(3) + 0.2 * rng.normal(size=A[..., :3, :3].shape)
    w = rng.normal(size=of.num_columns)

    def total(V, A, layer):
        made = ictd.Transformer(0.8, kernel, layers=3, params=(V, A), diagonal_mix=0.1, step_size=0.6)
        return made.values(of)[layer] @ w

    made = ictd.Transformer(0.8, kernel, layers=3, params=(V, A), diagonal_mix=0.1, step_size=0.6)
    for layer in (3, 2):
        row, block = made.gradient(of, layer, w)
        assert row.shape == shape[:-2] + (6,) and block.shape == shape[:-2] + (3, 3)
        for index in np.ndindex(row.shape):
            at, step = (*index[:-1], -1, index[-1]), np.zeros(shape)
            step[at] = 1e-6
            slope = (total(V + step, A, layer) - total(V - step, A, layer)) / 2e-6
            assert abs(slope - row[index]) < 1e-7 * max(1, abs(slope)), index
        for index in np.ndindex(block.shape):
            step = np.zeros(shape)
            step[index] = 1e-6
            slope = (total(V, A + step, layer) - total(V, A - step, layer)) / 2e-6
            assert abs(slope - block[index]) < 1e-7 * max(1, abs(slope)), index


def test_gradients_that_there_are_not_are_refused():
    of = context()
    with pytest.raises(InputError, match="its weights have no derivative"):
        ictd.Transformer(0.9, "tabular", layers=2).gradient(of)
    with pytest.raises(InputError, match="scores depend on rewards or memory"):
        ictd.Transformer(0.9, layers=2, params=(np.ones((6, 6)), np.ones((6, 6)))).gradient(of)
    with pytest.raises(InputError, match="layer is 3, expected 0 to 2"):
        ictd.Transformer(0.9, layers=2).gradient(of, 3)
    with pytest.raises(InputError, match="weights has 2 entries, expected one for each of the 16 columns"):
        ictd.Transformer(0.9, layers=2).gradient(of, weights=[1.0, 2.0])


def test_the_mirror_block_is_td_on_reflected_transitions():
    of = context()
    mirror = ictd.Block.mirror(3, gamma=0.9, layers=5)
    assert not np.signbit(mirror.V[0]).any() and mirror.V[-1].tolist() == [0, 0, 0, -1, -1, 1]
    np.testing.assert_allclose(mirror.transformer().values(of), ictd.td.reflected_td(of, gamma=0.9, layers=5), **CLOSE)


def test_kernel_weights_are_the_formulas():
    z = np.concatenate([np.concatenate([X, Y[:2]]), np.zeros((11, 3))], 1).T
    sources = np.arange(11) < 9
    A = np.zeros((6, 6))
    A[:3, :3] = np.random.default_rng(0).normal(size=(3, 3))
    for kernel in KERNELS:
        for block, given in ((np.diag([1, 1, 1, 0, 0, 0]), None), (A, A[:3, :3])):
            expected = weights(kernel, z, block, sources, ~sources & False, 0.6, 0.3)[:9]
            words = {"kernel": kernel, "temperature": 0.6, "diagonal_mix": 0.3}
            found = ictd.kernel_weights(X, Y[:2], A=given, **words)
            np.testing.assert_allclose(found, expected, **CLOSE)
            of_scores = ictd.kernel_weights(scores=ictd.similarities(X, Y[:2], kernel=kernel, A=given), **words)
            np.testing.assert_array_equal(of_scores, found)
    assert ictd.kernels == KERNELS
    for words in ({}, {"features": X, "scores": X}, {"scores": X, "A": np.eye(3)}):
        with pytest.raises(InputError, match="expected either features"):
            ictd.kernel_weights(**words)
    with pytest.raises(InputError, match=r"A has shape \[2, 2\], expected \[3, 3\]"):
        ictd.kernel_weights(X, A=np.eye(2))
    with pytest.raises(InputError, match="overflow"):
        ictd.kernel_weights(scores=[[np.inf]])
    with pytest.raises(InputError, match="no rows"):
        ictd.kernel_weights(np.zeros((0, 3)))


def descended(of, depth, alpha, direction):
    """Values of w ← w + (α/n)·g(v), v = ⟨w, x⟩, 0 for terminal states."""
    terminal = np.array(of.roles) == "terminal"
    x, w, n = of.features, np.zeros(of.features.shape[1]), of.num_transitions
    values = []
    for _ in range(depth + 1):
        v = np.where(terminal, 0, x @ w)
        values.append(v)
        w = w + alpha / n * direction(v)
    return np.array(values)


def test_algorithms_are_their_formulas():
    of, alpha, gamma, depth = context(), 0.3, 0.8, 6
    x, k = of.features, of.sources
    r = of.rewards[k]
    nxt = np.where((np.array(of.roles) == "terminal")[k + 1, None], 0, x[k + 1])
    td_error = lambda v, g=gamma: r + g * v[k + 1] - v[k]  # noqa: E731
    words = {"layers": depth, "step_size": alpha}
    linear = descended(of, depth, alpha, lambda v: td_error(v) @ x[k])
    np.testing.assert_allclose(ictd.td.linear_td(of, gamma=gamma, **words), linear, **CLOSE)
    np.testing.assert_allclose(ictd.td.lambda_td(of, gamma=gamma, lam=0.0, **words), linear, **CLOSE)
    residual = descended(of, depth, alpha, lambda v: td_error(v) @ (x[k] - gamma * nxt))
    np.testing.assert_allclose(ictd.td.residual_gradient_td(of, gamma=gamma, **words), residual, **CLOSE)
    means = np.cumsum(r) / np.arange(1, len(r) + 1)
    average = descended(of, depth, alpha, lambda v: (td_error(v, 1.0) - means) @ x[k])
    np.testing.assert_allclose(ictd.td.average_reward_td(of, **words), average, **CLOSE)
    traces, trace = [], np.zeros(3)
    for i, j in enumerate(k):
        trace = x[j] + (0.4 * trace if i and k[i - 1] == j - 1 else 0)
        traces.append(trace)
    expected = descended(of, depth, alpha, lambda v: td_error(v) @ np.array(traces))
    np.testing.assert_allclose(ictd.td.lambda_td(of, gamma=gamma, lam=0.4, **words), expected, **CLOSE)
    returns = np.array([sum(gamma**t * p for t, p in enumerate(part[i:])) for part in (R, Q) for i in range(len(part))])
    expected = descended(of, depth, alpha, lambda v: (returns - v[k]) @ x[k])
    np.testing.assert_allclose(ictd.td.monte_carlo_regression(of, gamma=gamma, **words), expected, **CLOSE)
    w = np.linalg.solve(sum(np.outer(x[j], x[j] - gamma * n) for j, n in zip(k, nxt, strict=True)), r @ x[k])
    np.testing.assert_allclose(ictd.td.least_squares_td(of, gamma=gamma), w, rtol=1e-9)


def test_weighted_algorithms_are_their_formulas():
    of = context()
    sources, terminal = masks(of)
    z = prompt(of.features, np.concatenate([R, Q]), sources)
    for kernel in KERNELS:
        expected = layers(z, *theta_star(3), sources, terminal, gamma=0.8, depth=4, kernel=kernel, tau=0.5, rho=0.1)[0][:, -1]
        found = ictd.td.weighted_softmax_td(of, gamma=0.8, layers=4, kernel=kernel, temperature=0.5, diagonal_mix=0.1)
        np.testing.assert_allclose(found, expected, **CLOSE)
    kappa = lambda x, y: np.exp(-((x - y) ** 2).sum() / 2)  # noqa: E731
    expected = layers(z, *theta_star(3), sources, terminal, gamma=0.8, depth=4, kernel="rbf")[0][:, -1]
    np.testing.assert_allclose(ictd.td.nonparametric_td(of, kappa=kappa, gamma=0.8, layers=4), expected, **CLOSE)
    one_hot = np.eye(3)[[0, 1, 0, 2, 1, 1, 0]]
    found = ictd.td.tabular_td(one_hot, R[:6], gamma=0.8, layers=4)
    tabular = one(one_hot, R[:6], gamma=0.8, depth=4, kernel="tabular")[0][:, -1]
    np.testing.assert_allclose(found, tabular, **CLOSE)


def test_what_a_similarity_raises_is_raised():
    def kappa(x, y):
        raise ZeroDivisionError("of one's own")

    with pytest.raises(ZeroDivisionError, match="own"):
        ictd.td.nonparametric_td(X, R, kappa=kappa, gamma=0.9)


@pytest.mark.parametrize(
    ("kappa", "error", "text"),
    [
        (lambda x, y: -1.0, InputError, "kappa is -1 for a pair of states, expected a positive number"),
        (lambda x, y: np.nan, InputError, "kappa is NaN"),
        (lambda x, y: np.inf, InputError, "kappa is inf"),
        (lambda x, y: 0.0, InputError, "kappa is 0 for a state and every source"),
        (lambda x, y: "near", InputTypeError, "kappa returned str, expected a number"),
    ],
)
def test_similarities_that_are_none_are_refused_by_name(kappa, error, text):
    with pytest.raises(error, match=text):
        ictd.td.nonparametric_td(X, R, kappa=kappa, gamma=0.9)


def test_a_similarity_may_be_0_for_some():
    far = ictd.td.nonparametric_td([[0.0], [9.0], [0.0]], [1.0, 5.0], kappa=lambda x, y: float(abs(x - y)[0] < 1), gamma=0.9, layers=1)
    np.testing.assert_array_equal(far[-1], [1.0, 5.0, 1.0])


def test_mistakes_about_algorithms_are_said():
    with pytest.raises(InputError, match="lambda is 2.0, expected 0 <= lambda <= 1"):
        ictd.td.lambda_td(X, R, gamma=0.9, lam=2.0)
    with pytest.raises(InputError, match="gamma is -1.0"):
        ictd.td.linear_td(X, R, gamma=-1.0)
    with pytest.raises(InputError, match="step sizes: 2 given"):
        ictd.td.linear_td(X, R, gamma=0.9, step_size=[1, 2])
    with pytest.raises(InputTypeError, match="rewards: missing beside features"):
        ictd.td.linear_td(X, gamma=0.9)
    with pytest.raises(InputError, match="rewards: found beside a context"):
        ictd.td.linear_td(context(), R, gamma=0.9)
    with pytest.raises(InputTypeError, match="expected ictd.Context"):
        ictd.Transformer(0.9).values(X)


def test_contexts_know_their_parts(tmp_path):
    of = context()
    assert repr(of) == "<Context: 12 transitions, 2 episodes, 2 queries, 3 features>"
    assert of.episodes == [(slice(0, 9), True), (slice(9, 14), False)]
    assert (of.num_transitions, of.num_columns, of.num_queries) == (12, 16, 2)
    np.testing.assert_array_equal(of.features, np.concatenate([X, Y, Y[:2]]))
    np.testing.assert_array_equal(of.rewards[of.sources], np.concatenate([R, Q]))
    labels = [0] * 9 + [1] * 5
    arrays = ictd.Context(np.concatenate([X, Y]), np.concatenate([R, Q]), episode=labels, terminated=[True, False], queries=Y[:2])
    for again in (arrays, pickle.loads(pickle.dumps(of)), copy.deepcopy(of)):
        assert again == of
    of.save(tmp_path / "context.json")
    assert ictd.Context.read(tmp_path / "context.json") == of
    arrays = {"features": np.concatenate([X, Y]), "rewards": np.concatenate([R, Q]), "queries": Y[:2]}
    np.savez(tmp_path / "context.npz", lengths=[8, 4], terminated=[True, False], **arrays)
    assert ictd.Context.read(tmp_path / "context.npz") == of
    assert ictd.Context(X, R) != of
    with pytest.raises(AttributeError):
        of.features = X
    with pytest.raises(InputError, match="episode 1 has 3 rewards and 5 feature rows"):
        ictd.Context.from_episodes([(X, R), (Y, Q[:3])])
    with pytest.raises(InputError, match="row 0 of episode 1 has 2 entries, expected 3"):
        ictd.Context.from_episodes([(X, R), (Y[:, :2], Q)])
    with pytest.raises(InputError, match="the context is empty"):
        ictd.Context.from_episodes([])
    for flag in ("False", "", 2, None, [True, False], np.array([True])):
        with pytest.raises(InputError, match="terminated"):
            ictd.Context.from_episodes([(X, R, flag)])
    with pytest.raises(InputError, match="terminated"):
        ictd.Context(X, R, terminated="False")
    assert ictd.Context.from_episodes([(X, R, np.True_)]) == ictd.Context(X, R, terminated=True)
    (tmp_path / "bad.json").write_text('{"features": 3}')
    with pytest.raises(InputError, match="bad.json: features"):
        ictd.Context.read(tmp_path / "bad.json")


def test_transformers_and_blocks_are_copied_and_kept():
    V, A = theta_star(3)
    stack = (np.stack([V] * 2), np.stack([A] * 2))
    for params in (None, (V, A), stack):
        made = ictd.Transformer(0.7, "rbf", 2.0, 2, [0.5, 0.25], "dual", 0.1, params)
        for again in (pickle.loads(pickle.dumps(made)), copy.copy(made)):
            np.testing.assert_array_equal(again.values(context()), made.values(context()))
            assert repr(again) == repr(made)
        block = made.as_block(3)
        assert block == pickle.loads(pickle.dumps(block)) and block.step_size == (0.5, 0.25)
        np.testing.assert_array_equal(block.transformer().values(context()), made.values(context()))
        assert not block.V.flags.writeable and block.tied == (params is not stack) and block.features == 3
    with pytest.raises(InputError, match="features: missing"):
        ictd.Transformer(0.9).as_block()
    with pytest.raises(InputError, match="features is 4, expected 3"):
        ictd.Transformer(0.9, params=(V, A)).as_block(4)
    with pytest.raises(InputError, match="square matrices"):
        ictd.Block(np.zeros((3, 4)), np.zeros((3, 4)), 0.9, 2)
    with pytest.raises(InputError, match="as many of both as layers"):
        ictd.Block(*stack, 0.9, 3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_theta_star_is_the_same_written_out(kernel):
    # Short contexts, long ones, and ones whose states repeat, which go other ways.
    for n, states in ((10, None), (600, None), (60, 5)):
        x, r = trajectory(2, n=n, d=3, states=states)
        for words in ({}, {"diagonal_mix": 0.2}, {"block": "dual"}):
            words = {"gamma": 0.8, "kernel": kernel, "layers": 4, "temperature": 0.7, "step_size": 0.5, **words}
            np.testing.assert_array_equal(ictd.forward(x, r, **words), ictd.forward(x, r, params=theta_star(3), **words))


def test_wide_features_need_no_matrices_of_their_size():
    # A score block of θ_* for these would have 10^10 numbers.
    d = 10**5
    x, r = trajectory(0, n=5, d=d)
    x, of = x / 300, ictd.Context(x / 300, r)
    narrow = x @ np.linalg.svd(x, full_matrices=False)[2].T  # the same inner products and distances
    for kernel in KERNELS:
        words = {"gamma": 0.9, "kernel": kernel, "layers": 3}
        expected = one(narrow, r, gamma=0.9, kernel=kernel, depth=3)[0][:, -1]
        for found in (ictd.forward(x, r, **words), ictd.forward(x[None], r[None], **words)[0], ictd.td.weighted_softmax_td(x, r, **words)):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    made = ictd.Transformer(0.9)
    assert made.report(of)["values"] == made.values(of).tolist() and made.targets(of).shape == (16, 6)
    for call in (
        lambda: made.tokens(of),
        lambda: made.attention(of),
        lambda: made.report(of, tokens=True),
        lambda: made.report(of, attention=True),
        lambda: made.gradient(of),
        lambda: made.as_block(d),
        lambda: ictd.similarities(x),
        lambda: ictd.kernel_weights(x),
        lambda: ictd.td.least_squares_td(of, gamma=0.9),
        lambda: ictd.certify(x, r),
        lambda: ictd.construct("td", x, r),
    ):
        with pytest.raises(InputError, match="memory is about"):
            call()


def test_what_does_not_fit_into_memory_is_refused():
    deep, of = ictd.Transformer(0.9, layers=10**12), context()
    wide = ictd.Context(np.zeros((200_001, 1)), np.zeros(200_000))
    for call in (
        lambda: deep.values(of),
        lambda: deep.targets(of),
        lambda: deep.tokens(of),
        lambda: deep.td_errors(of),
        lambda: deep.gradient(of),
        lambda: deep.report(of),
        lambda: ictd.Transformer(0.9).attention(wide),
        lambda: ictd.Transformer(0.9).gradient(wide),
        lambda: ictd.kernel_weights(np.zeros((200_000, 1))),
        lambda: ictd.td.linear_td(of, gamma=0.9, layers=10**12),
        lambda: ictd.td.nonparametric_td(of, kappa=lambda x, y: 1.0, gamma=0.9, layers=10**12),
        lambda: ictd.Block.theta_star(10**6, gamma=0.9, layers=1),
        lambda: ictd.construct("td", X, R, layers=10**12),
        lambda: ictd.task("dense", states=3, features=1000).sample(10**8, 0),
    ):
        with pytest.raises(InputError, match="memory|layers|states"):
            call()
