"""Estimators in threads, in processes that forked, and under Ctrl-C."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import time
import warnings
from typing import Any

import numpy as np
import pytest

import ictd
from ictd.errors import RefusedWarning
from estimator_data import columns, walks

X, Y, REST = columns(walks())


@pytest.fixture(scope="module")
def model() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefusedWarning)
        return ictd.SoftmaxTD(0.9).fit(X, Y, **REST)


def test_threads_may_share_an_estimator(model: Any) -> None:
    expected = model.predict(X)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.predict(X), range(64)))
        fits = list(pool.map(lambda _: ictd.SoftmaxTD(0.9, layers=8).fit(X, Y, **REST).predict(X), range(4)))
    assert all(np.array_equal(values, expected) for values in found)
    assert all(np.array_equal(values, fits[0]) for values in fits)


def _asked(given: tuple[Any, np.ndarray]) -> np.ndarray:
    estimator, states = given
    return np.concatenate([estimator.predict(states), estimator.interval(states).ravel()])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_give_the_same(model: Any, method: str) -> None:
    import multiprocessing

    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    expected = _asked((model, X))
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(_asked, [(model, X)] * 3).get(timeout=120)
    assert all(np.array_equal(values, expected) for values in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_forked_predicts_and_fits(model: Any) -> None:
    # Much work, so that threads of the parent have been at it before.
    many = np.repeat(X, 200, axis=0)
    expected = model.predict(many)
    child = os.fork()
    if child == 0:
        is_same = np.array_equal(model.predict(X), expected[::200]) and np.array_equal(model.predict(many), expected)
        again = ictd.SoftmaxTD(0.9, layers=8).fit(X, Y, **REST)
        os._exit(0 if is_same and np.all(np.isfinite(again.predict(X))) else 1)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


EVERY = [ictd.SoftmaxTD, ictd.KBRL, ictd.KernelLSTD, ictd.LinearLSTD, ictd.LinearTD, ictd.LSTD, ictd.LSTDLambda, ictd.TabularTD, ictd.MonteCarlo, ictd.Constant]


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_little_work_needs_no_threads_and_none_stay(kind: Any) -> None:
    before = _threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefusedWarning)
        estimator = kind(0.9, threads=3).fit(X, Y, **REST)
    estimator.score(X, Y, **REST)
    until = time.monotonic() + 10
    # Those of a fit end when it is done; a pool of the process would stay, and a child that forks would wait for it.
    while _threads() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert _threads() <= before
    for _ in range(3):
        estimator.predict(X)
        assert _threads() <= before
