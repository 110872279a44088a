"""The forward pass on arrays: against NumPy, on whatever arrays there are, in threads and in forked processes."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from oracle import KERNELS, child, cli, one, trajectory

import ictd
from ictd.errors import DivergedError, FileError, IctdError, InputError, InputTypeError

CLOSE = {"rtol": 0, "atol": 1e-12}


@pytest.mark.parametrize("block", ["tsm", "dual"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_it_is_the_formulas(kernel, block):
    for seed in range(3):
        x, r = trajectory(seed, n=9, states=5 if kernel == "tabular" else None)
        words = {"gamma": 0.8, "kernel": kernel, "block": block, "diagonal_mix": 0.1 * seed}
        found = ictd.forward(x, r, temperature=0.7, layers=6, step_size=0.9, **words)
        expected = one(x, r, gamma=0.8, kernel=kernel, block=block, rho=0.1 * seed, tau=0.7, depth=6, alpha=0.9)[0][:, -1]
        np.testing.assert_allclose(found, expected, **CLOSE)


def test_defaults_are_those_of_the_contract():
    x, r = trajectory(0)
    found = ictd.forward(x, r, gamma=0.9)
    assert found.shape == (16, 11) and found.dtype == np.float64 and found.flags.writeable
    np.testing.assert_allclose(found, one(x, r, gamma=0.9, depth=15)[0][:, -1], **CLOSE)


def test_a_long_context_is_the_same_as_a_short_one():
    # Beyond some hundred columns other code computes the same, on threads.
    x, r = trajectory(0, n=600, d=2)
    expected = one(x, r, gamma=0.9, depth=2)[0][:, -1]
    for threads in (None, 1, 2):
        np.testing.assert_allclose(ictd.forward(x, r, gamma=0.9, layers=2, threads=threads), expected, **CLOSE)


def test_episodes_queries_and_terminal_states():
    (x, r), (y, q) = trajectory(1, n=5), trajectory(2, n=3)
    asked = trajectory(3, n=2)[0]
    features, rewards = np.concatenate([x, y]), np.concatenate([r, q])
    episode = ["a"] * 6 + ["b"] * 4
    from oracle import layers, prompt, theta_star

    for flags in ([True, False], [False, True], False):
        found = ictd.forward(features, rewards, gamma=0.9, layers=4, episode=episode, terminated=flags, queries=asked)
        all_rows = np.concatenate([features, asked])
        sources = np.ones(13, bool)
        sources[[5, 9, 10, 11, 12]] = False
        terminal = np.zeros(13, bool)
        terminal[[5, 9]] = flags
        z = prompt(all_rows, rewards, sources)
        expected = layers(z, *theta_star(4), sources, terminal, gamma=0.9, depth=4)[0][:, -1]
        np.testing.assert_allclose(found, expected, **CLOSE)


def test_step_sizes_may_differ_between_layers():
    x, r = trajectory(0)
    sizes = [1.0, 0.5, 0.25]
    found = ictd.forward(x, r, gamma=0.9, layers=3, step_size=sizes)
    np.testing.assert_allclose(found, one(x, r, gamma=0.9, depth=3, alpha=sizes)[0][:, -1], **CLOSE)
    np.testing.assert_array_equal(ictd.forward(x, r, gamma=0.9, layers=3, step_size=np.array(sizes)), found)
    with pytest.raises(InputError, match="step sizes: 2 given, expected 1 or one for each of the 3 layers"):
        ictd.forward(x, r, gamma=0.9, layers=3, step_size=[1.0, 2.0])


@pytest.mark.parametrize("threads", [None, 1, 2])
def test_a_batch_is_its_contexts(threads):
    for count, n in [(1, 3), (7, 10), (400, 30)]:
        pairs = [trajectory(k, n=n) for k in range(count)]
        x, r = (np.stack(parts) for parts in zip(*pairs, strict=True))
        found = ictd.forward(x, r, gamma=0.9, threads=threads)
        assert found.shape == (count, 16, n + 1)
        np.testing.assert_array_equal(found, [ictd.forward(*pair, gamma=0.9) for pair in pairs])
        flags = np.arange(count) % 2 == 0
        found = ictd.forward(x, r, gamma=0.9, queries=x[:, :2], terminated=flags, threads=threads)
        expected = [ictd.forward(*p, gamma=0.9, queries=p[0][:2], terminated=bool(f)) for p, f in zip(pairs, flags, strict=True)]
        np.testing.assert_array_equal(found, expected)
    assert ictd.forward(np.zeros((0, 4, 2)), np.zeros((0, 3)), gamma=0.9).shape == (0, 16, 4)


def test_a_mistake_in_a_batch_is_located():
    x, r = np.stack([trajectory(k)[0] for k in range(3)]), np.stack([trajectory(k)[1] for k in range(3)])
    x[1, 2, 0] = np.nan
    with pytest.raises(InputError, match="context 1: features: entry 0 of row 2 of episode 0 is NaN"):
        ictd.forward(x, r, gamma=0.9)
    for wrong in (r[:2], r[:, :5], r[0]):
        with pytest.raises(InputError):
            ictd.forward(x, wrong, gamma=0.9)
    with pytest.raises(InputError, match="queries"):
        ictd.forward(x, r, gamma=0.9, queries=x[0])
    for count in (0, 3):
        with pytest.raises(InputError, match="context 0: rewards: episode 0 has 10 rewards and 5 feature rows"):
            ictd.forward(np.zeros((count, 5, 4)), np.zeros((count, 10)), gamma=0.9)
        with pytest.raises(InputError, match="context 0: features: row 0 of episode 0 has no entries"):
            ictd.forward(np.zeros((count, 5, 0)), np.zeros((count, 4)), gamma=0.9)
    # Shapes that no numbers of which would fit into memory.
    with pytest.raises(InputError, match="episode 0 has 3 rewards and 1000000 feature rows"):
        ictd.forward(np.zeros((0, 10**6, 10**6)), np.zeros((0, 3)), gamma=0.9)
    with pytest.raises(InputError, match="memory"):
        ictd.forward(np.zeros((0, 2**40, 4)), np.zeros((0, 2**40 - 1)), gamma=0.9)
    with pytest.raises(InputError, match="episode"):
        ictd.forward(x, r, gamma=0.9, episode=[0] * 11)
    with pytest.raises(DivergedError, match="context 2"):
        big = np.stack([trajectory(0)[0]] * 3) * np.array([1, 1, 1e3])[:, None, None]
        ictd.forward(big, r, gamma=0.9, layers=200, kernel="linear")


def transformations():
    x, r = trajectory(0)
    x, r = np.round(4 * x), np.round(4 * r)
    wide = np.zeros((22, 8))
    wide[::2, ::2] = x
    frozen = x.copy()
    frozen.setflags(write=False)
    return {
        "float32": (x.astype(np.float32), r.astype(np.float32)),
        "float16": (x.astype(np.float16), r.astype(np.float16)),
        "int64": (x.astype(int), r.astype(int)),
        "int8": (x.astype(np.int8), r.astype(np.int8)),
        "object": (x.astype(object), r.astype(object)),
        "fortran": (np.asfortranarray(x), r),
        "strided": (wide[::2, ::2], np.repeat(r, 2)[::2]),
        "backwards": (x[::-1][::-1], r[::-1].copy()[::-1]),
        "read-only": (frozen, r),
        "big-endian": (x.astype(">f8"), r.astype(">f4")),
        "lists": (x.tolist(), r.tolist()),
        "tuples": (tuple(map(tuple, x)), tuple(r)),
        "with a mask that hides nothing": (np.ma.masked_array(x, mask=np.zeros(x.shape, bool)), np.ma.masked_array(r)),
        "unaligned": (np.frombuffer(b"0" + x.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(x.shape), r),
    }, (x, r)


@pytest.mark.parametrize("kind", transformations()[0])
def test_arrays_of_any_kind(kind):
    (x, r), plain = transformations()[0][kind], transformations()[1]
    np.testing.assert_array_equal(ictd.forward(x, r, gamma=0.9, step_size=0.1), ictd.forward(*plain, gamma=0.9, step_size=0.1))


def test_truth_values_are_numbers():
    x, r = trajectory(0)
    x, r = x > 0, r > 0
    np.testing.assert_array_equal(ictd.forward(x, r, gamma=0.9), ictd.forward(x.astype(float), r.astype(float), gamma=0.9))


X, R = trajectory(0)
NAN = np.where(np.arange(44).reshape(11, 4) == 9, np.nan, X)


@pytest.mark.parametrize(
    ("features", "rewards", "words", "error", "text"),
    [
        (NAN, R, {}, InputError, "features: entry 1 of row 2 of episode 0 is NaN, expected a finite number"),
        (X * np.inf, R, {}, InputError, "expected a finite number"),
        (X, R * np.nan, {}, InputError, "rewards: entry 0 of episode 0 is NaN"),
        (np.zeros((0, 4)), [], {}, InputError, "rewards"),
        (np.zeros((1, 4)), [], {}, InputError, "the context is empty, expected at least one transition"),
        (np.zeros((11, 0)), R, {}, InputError, "has no entries, expected at least one"),
        (X[:5], R, {}, InputError, "episode 0 has 10 rewards and 5 feature rows, expected one row more than rewards"),
        (X[0], R, {}, InputError, r"features has shape \[4\], expected two dimensions"),
        (X, R[:, None], {}, InputError, r"rewards has shape \[10, 1\], expected one dimension"),
        (X, 1.0, {}, InputError, r"rewards has shape \[\], expected one dimension"),
        (X[None, None], R, {}, InputError, "expected two dimensions"),
        ([[1.0], [2.0, 3.0]], [1.0], {}, InputError, "features: .*, expected numbers"),
        (X.astype(str), R, {}, InputTypeError, "features has dtype <U.*, expected real numbers"),
        (X.astype(complex), R, {}, InputTypeError, "dtype complex128, expected real numbers"),
        (X.astype("datetime64[s]"), R, {}, InputTypeError, "expected real numbers"),
        (None, R, {}, InputError, "features"),
        (np.full((11, 4), "a", dtype=object), R, {}, InputTypeError, "expected real numbers"),
        (X, R, {"gamma": 1.0}, InputError, "gamma is 1.0, expected 0 <= gamma < 1"),
        (X, R, {"gamma": float("nan")}, InputError, "gamma is NaN"),
        (X, R, {"gamma": "x"}, InputTypeError, "gamma is of type str, expected a number"),
        (X, R, {"gamma": None}, InputTypeError, "gamma is of type NoneType, expected a number"),
        (X, R, {"gamma": 10**400}, InputError, "gamma is beyond the numbers of double precision"),
        (X, R, {"temperature": [1.0, 2.0]}, InputTypeError, "temperature is of type list, expected a number"),
        (X, R, {"diagonal_mix": "0.5"}, InputTypeError, "diagonal_mix is of type str, expected a number"),
        (np.ma.masked_array(X, mask=X > 0.9), R, {}, InputError, "features has masked entries, expected none"),
        (X, np.ma.masked_array(R, mask=R > 0), {}, InputError, "rewards has masked entries"),
        (X, R, {"queries": np.ma.masked_array(X, mask=X > 0)}, InputError, "queries has masked entries"),
        (X, R, {"episode": np.ma.masked_array([0] * 11, mask=[1] * 11)}, InputError, "episode has masked entries"),
        (X, R, {"terminated": np.ma.masked_array([True], mask=[True])}, InputError, "terminated has masked entries"),
        (X, R, {"params": (np.ma.masked_array(np.eye(7), mask=np.eye(7)), np.eye(7))}, InputError, "V has masked entries"),
        (X, R, {"kernel": "cosine"}, InputError, "kernel is 'cosine', expected one of softmax, relu"),
        (X, R, {"block": "triple"}, InputError, "block is 'triple', expected dual or tsm"),
        (X, R, {"temperature": 0.0}, InputError, "temperature is 0.0"),
        (X, R, {"temperature": float("nan")}, InputError, "temperature is NaN"),
        (X, R, {"diagonal_mix": 1.5}, InputError, "diagonal mix is 1.5"),
        (X, R, {"layers": -1}, InputError, "layers is -1, expected a whole number"),
        (X, R, {"layers": 1.5}, InputTypeError, "layers is of type float, expected a whole number"),
        (X, R, {"step_size": float("inf")}, InputError, "step size 0 is inf"),
        (X, R, {"step_size": "x"}, InputTypeError, "step_size"),
        (X, R, {"queries": X[:, :2]}, InputError, "query 0 has 2 entries, expected 4"),
        (X, R, {"queries": X * np.nan}, InputError, "queries: entry 0 of query 0 is NaN"),
        (X, R, {"episode": [0] * 5 + [1] * 6}, InputError, "rewards: found 10 entries, expected 9"),
        (X, R, {"episode": [0, 1, 0] + [2] * 8}, InputError, "0 comes back after another"),
        (X, R, {"episode": [0] * 3}, InputError, "episode: found 3 entries, expected 11"),
        (X, R, {"terminated": [True, False]}, InputError, "terminated: found 2 entries, expected 1"),
        (X, R, {"terminated": "yes"}, InputError, "expected true or false"),
        (X, R, {"threads": 0}, InputError, "threads is 0, expected 1 to 1024"),
        (X, R, {"params": (np.eye(7), np.eye(6))}, InputError, "expected .*the same for V and A"),
        (X, R, {"params": (np.eye(6), np.eye(6))}, InputError, "made for 3 features, but the context has 4"),
        (X, R, {"params": (np.eye(7) * np.nan, np.eye(7))}, InputError, "V: entry .0, 0. is NaN"),
        (X, R, {"params": 3}, InputTypeError, "params is of type int, expected a pair"),
        (X, R, {"params": "nowhere.safetensors"}, FileError, "nowhere"),
        (X, R, {"layers": 400, "kernel": "linear", "step_size": 1e3}, DivergedError, "values overflow in layer"),
        (X, R, {"layers": 10**15}, InputError, "memory is about .* GB for these sizes"),
        (X, R, {"layers": 2**63 - 1}, InputError, "memory is about .* GB for these sizes"),
        (X, R, {"layers": 10**30}, InputError, "layers is 1000"),
        (np.broadcast_to(0.5, (10**7, 10**6)), R, {}, InputError, "memory is about .* lower features"),
        (X * 1e200, R, {}, InputError, "the scores of column 0 overflow"),
    ],
)
def test_mistakes_are_said(features, rewards, words, error, text):
    with pytest.raises(error, match=text) as raised:
        ictd.forward(features, rewards, **{"gamma": 0.9, **words})
    assert isinstance(raised.value, IctdError)


def test_errors_are_those_that_callers_expect():
    with pytest.raises(ValueError, match="overflow"):
        ictd.forward(X, R, gamma=0.9, layers=400, kernel="linear", step_size=1e3)
    with pytest.raises(FileNotFoundError):
        ictd.forward(X, R, gamma=0.9, params="nowhere.safetensors")


def test_parameters_of_files_blocks_and_arrays(tmp_path):
    rng = np.random.default_rng(0)
    for shape in [(7, 7), (3, 7, 7)]:
        V, A = 0.2 * rng.normal(size=shape), 0.2 * rng.normal(size=shape)
        V[..., :5, :] = 0
        for block in ("tsm", "dual"):
            found = ictd.forward(X, R, gamma=0.9, layers=3, params=(V, A), block=block)
            expected = one(X, R, gamma=0.9, depth=3, params=(V, A), block=block)[0][:, -1]
            np.testing.assert_allclose(found, expected, **CLOSE)
            made = ictd.Block(V, A, 0.9, 3, kernel="rbf", temperature=2.0, block=block, step_size=0.5)
            of_block = ictd.forward(X, R, gamma=0.9, params=made)
            expected = one(X, R, gamma=0.9, depth=3, params=(V, A), block=block, kernel="rbf", tau=2.0, alpha=0.5)[0][:, -1]
            np.testing.assert_allclose(of_block, expected, **CLOSE)
            with pytest.raises(InputError, match="kernel is relu, expected rbf"):
                ictd.forward(X, R, gamma=0.9, params=made, kernel="relu")
            with pytest.raises(InputError, match="gamma is 0.5, expected 0.9"):
                ictd.forward(X, R, gamma=0.5, params=made)
    ictd.circuit("td").save(tmp_path)
    found = ictd.forward(X, R, gamma=0.9, params=tmp_path / "circuit.safetensors")
    np.testing.assert_array_equal(found, ictd.forward(X, R, gamma=0.9, layers=4))


def test_layers_with_step_sizes_of_their_own_in_a_block():
    block = ictd.Block.theta_star(4, gamma=0.9, layers=3, step_size=(1.0, 0.5, 0.25))
    np.testing.assert_array_equal(ictd.forward(X, R, gamma=0.9, params=block), ictd.forward(X, R, gamma=0.9, layers=3, step_size=[1.0, 0.5, 0.25]))


def test_forward_is_what_the_command_line_gives():
    context = ictd.Context(X, R, queries=X[:2])
    found = ictd.Transformer(0.8, kernel="rbf", temperature=0.5, layers=4).report(context, fixed_point=True, tokens=True, attention=True)
    words = ["--kernel", "rbf", "--temperature", 0.5, "--layers", 4, "--gamma", 0.8, "--fixed-point", "--tokens", "--attention"]
    assert dict(found) == cli("forward", "--input", "-", *words, text=context.to_json())
    assert found.figures and found.text(80) and found["values"] == ictd.forward(X, R, gamma=0.8, kernel="rbf", temperature=0.5, layers=4, queries=X[:2]).tolist()


def test_threads_do_not_disturb_each_other():
    expected = ictd.forward(X, R, gamma=0.9)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: ictd.forward(X, R, gamma=0.9), range(400)):
            np.testing.assert_array_equal(found, expected)


def test_small_calls_start_no_threads():
    code = "import os, numpy as np, ictd; ictd.forward(np.eye(11), np.ones(10), gamma=0.9); print(len(os.listdir('/proc/self/task')))"
    if os.path.isdir("/proc/self/task"):
        before = child("import os, numpy as np, ictd; print(len(os.listdir('/proc/self/task')))")
        assert child(code) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_processes_compute_too():
    code = """
import os, warnings
import numpy as np
import ictd
warnings.simplefilter("ignore")
x, r = np.random.default_rng(0).uniform(-1, 1, (64, 81, 4)), np.random.default_rng(1).uniform(-1, 1, (64, 80))
here = ictd.forward(x, r, gamma=0.9)
alone = ictd.forward(x[0], r[0], gamma=0.9)
pid = os.fork()
if pid == 0:
    same = np.array_equal(ictd.forward(x[0], r[0], gamma=0.9), alone) and np.array_equal(ictd.forward(x, r, gamma=0.9, threads=2), here)
    same = same and ictd.verify(trials=1).holds
    os._exit(0 if same else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert child(code) == "0\n"


def test_errors_survive_pickling():
    try:
        ictd.forward(X, R, gamma=2.0)
    except InputError as error:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is InputError and str(again) == str(error)
