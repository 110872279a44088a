"""Exceptions: what they are, what they say, and that they reach other processes."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ictd
from ictd import errors


def raised(call: Callable[[], object]) -> BaseException:
    with pytest.raises(errors.IctdError) as found:
        call()
    return found.value


def every(tmp_path: Path) -> list[BaseException]:
    locked = tmp_path / "locked"
    locked.mkdir()
    plain = [kind("text") for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, (errors.IctdError, Warning))]
    found = [
        raised(lambda: ictd.read_log(tmp_path / "nowhere.csv")),
        raised(lambda: ictd.read_log(locked)),
        raised(lambda: ictd.Transformer(2.0)),
        raised(lambda: ictd.Transformer(0.9, layers="x")),  # type: ignore[arg-type]
        raised(lambda: ictd.LSTD(0.9).predict([[1.0]])),
        raised(lambda: ictd.forward([[1e3], [1e3]], [1.0], gamma=0.9, layers=400, kernel="linear")),
        errors.FileError.of(None, "text", "path"),
        ictd.NotFittedError("text"),
    ]
    assert len({type(error) for error in found}) >= 6 and len(plain) >= 7
    return plain + found


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ictd.SoftmaxTD(0.9, threads=-1).fit([[1.0]], [1.0]), errors.InputError, "threads is -1"),
        (lambda: ictd.SoftmaxTD(0.9, seed=-1).fit([[1.0]], [1.0]), errors.InputError, "seed is -1"),
        (lambda: ictd.SoftmaxTD("x").fit([[1.0]], [1.0]), errors.InputTypeError, "gamma is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.pretrain(threads=-1), errors.InputError, "threads is -1"),
        (lambda: ictd.pretrain(checkpoint_every=-1), errors.InputError, "checkpoint_every is -1"),
        (lambda: ictd.pretrain(threads="x"), errors.InputTypeError, "threads is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.reproduce(seed=-1), errors.InputError, "seed is -1"),
        (lambda: ictd.reproduce(threads=-1), errors.InputError, "threads is -1"),
        (lambda: ictd.branches(threads=-1), errors.InputError, "threads is -1"),
        (lambda: ictd.readings(threads=-1), errors.InputError, "threads is -1"),
        (lambda: ictd.mirror(epochs=-1), errors.InputError, "epochs is -1"),
        (lambda: ictd.control(trials=-1), errors.InputError, "trials is -1"),
        (lambda: ictd.sweep({"seeds": 1}, "nowhere", threads=-1), errors.InputError, "threads is -1"),
        (lambda: ictd.read_log("nowhere.csv", threads=-1), errors.InputError, "threads is -1"),
        (lambda: ictd.as_log("nowhere.csv", threads=-1), errors.InputError, "threads is -1"),
        (lambda: ictd.evaluate("nowhere.csv", 0.9, threads=-1), errors.InputError, "threads is -1"),
        (lambda: ictd.evaluate("nowhere.csv", "x"), errors.InputTypeError, "gamma is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.Transformer("x"), errors.InputTypeError, "gamma is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.Task([[1.0]], [1.0], "x", [[1.0]]), errors.InputTypeError, "gamma is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.Family("dense", gamma="x"), errors.InputTypeError, "gamma is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.bound(delta="x"), errors.InputTypeError, "delta is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.verify(tolerance="x"), errors.InputTypeError, "tolerance is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.msve(temperature="x"), errors.InputTypeError, "temperature is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.certify(temperature="x"), errors.InputTypeError, "temperature is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.circuit("td", gamma="x"), errors.InputTypeError, "gamma is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.forward([[1.0], [1.0]], [1.0], gamma=0.9, kernel=3), errors.InputTypeError, "kernel is of type int, expected a text"),  # type: ignore[arg-type]
        (lambda: ictd.Transformer(0.9, block=None), errors.InputTypeError, "block is of type NoneType"),  # type: ignore[arg-type]
        (lambda: ictd.similarities([[1.0]], kernel=3), errors.InputTypeError, "kernel is of type int"),  # type: ignore[arg-type]
        (lambda: ictd.circuit(3), errors.InputTypeError, "circuit is of type int"),  # type: ignore[arg-type]
        (lambda: ictd.construct(3, [[1.0], [1.0]], [1.0]), errors.InputTypeError, "algorithm is of type int"),  # type: ignore[arg-type]
        (lambda: ictd.Family(3), errors.InputTypeError, "family is of type int"),  # type: ignore[arg-type]
        (lambda: ictd.msve(kernel=3), errors.InputTypeError, "kernel is of type int"),  # type: ignore[arg-type]
        (lambda: ictd.circuit("td", seed=-1), errors.InputError, "seed is -1"),
        (lambda: ictd.construct("td", [[1.0], [1.0]], [1.0], lam="x"), errors.InputTypeError, "lam is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.td.linear_td([[1.0], [1.0]], [1.0], gamma="x"), errors.InputTypeError, "gamma is of type str"),  # type: ignore[arg-type]
        (lambda: ictd.kernel_weights([[1.0]], temperature="x"), errors.InputTypeError, "temperature is of type str"),  # type: ignore[arg-type]
    ],
)
def test_numbers_that_are_none_are_refused_by_name(call: Callable[[], object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_they_are_copied_and_pickled(tmp_path: Path) -> None:
    for error in every(tmp_path):
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(again) is type(error) and str(again) == str(error) and again.args == error.args
            if isinstance(error, OSError):
                assert (again.errno, again.filename) == (error.errno, error.filename)


def test_those_of_scikit_learn_are_too() -> None:
    sklearn = pytest.importorskip("sklearn.exceptions")
    error = raised(lambda: ictd.LSTD(0.9).predict(np.ones((1, 1))))
    assert isinstance(error, sklearn.NotFittedError) and isinstance(error, ictd.NotFittedError)
    assert type(pickle.loads(pickle.dumps(error))) is type(error)
    # Elsewhere it is the library's own, unless that is imported there.
    code = "import pickle, sys; e = pickle.loads(sys.stdin.buffer.read()); print(type(e).__name__, type(e).__mro__[1].__name__, e)"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(error), capture_output=True, timeout=120, check=True)
    assert done.stdout.decode().startswith("NotFittedError IctdError This LSTD instance is not fitted yet")


def test_files_are_told_of_in_the_librarys_words(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.csv"
    error = raised(lambda: ictd.read_log(path))
    assert isinstance(error, FileNotFoundError) and isinstance(error, errors.FileError)
    assert error.errno == 2 and error.filename == str(path) and str(error).startswith(f"input {path}: No such file")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError, RuntimeError])
def test_only_what_is_said_of_a_value_is_said_in_the_librarys_words(kind: type[BaseException]) -> None:
    class Number:
        def __float__(self) -> float:
            raise kind("of its own")

        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise kind("of its own")

    class Path:
        def __fspath__(self) -> str:
            raise kind("of its own")

    for call in (
        lambda: ictd.forward(Number(), [1.0], gamma=0.9, layers=1),
        lambda: ictd.forward([[Number()], [1.0]], [1.0], gamma=0.9, layers=1),
        lambda: ictd.Transformer(0.9, params=(Number(), [[1.0]])),
        lambda: ictd.forward([[1.0], [1.0]], [1.0], gamma=0.9, layers=1, params=Path()),
    ):
        with pytest.raises(kind, match="of its own"):
            call()


def test_a_text_is_no_number() -> None:
    for text in (["1.5"], np.array(["1.5"]), np.array(["1.5"], dtype=object), [1.0, b"2"], np.array([1.0, "2"], dtype=object)):
        with pytest.raises(errors.InputTypeError, match="rewards"):
            ictd.forward([[1.0]] * (len(text) + 1), text, gamma=0.9, layers=1)


def test_a_callback_is_a_function_also_where_it_is_not_called() -> None:
    for call in (
        lambda: ictd.msve(tasks=1, callback=3),  # type: ignore[arg-type]
        lambda: ictd.LSTD(0.9).fit([[1.0], [2.0]], [1.0, 1.0], callback=3),  # type: ignore[arg-type]
        lambda: ictd.pretrain(seeds=1, epochs=1, batch=1, callback=3, progress=True),  # type: ignore[arg-type]
    ):
        with pytest.raises(errors.InputTypeError, match="callback is of type int, expected a function"):
            call()


def test_options_are_said_as_keywords(tmp_path: Path) -> None:
    small = {"seeds": 1, "set": {"epochs": 1, "batch": 1}}
    ictd.sweep({**small, "grid": {"gamma": [0.8]}}, tmp_path)
    with pytest.raises(errors.InputError, match="extend=True to keep its runs for this plan, or fresh=True"):
        ictd.sweep({**small, "grid": {"gamma": [0.7]}}, tmp_path)


def test_a_dictionary_in_itself_is_refused() -> None:
    plan: dict[str, object] = {"seeds": 1}
    plan["set"] = plan
    with pytest.raises(errors.InputError, match="in itself"):
        ictd.sweep(plan, "nowhere")


def test_errors_are_there_with_the_package() -> None:
    assert "errors" in ictd.__all__ and "td" in ictd.__all__
