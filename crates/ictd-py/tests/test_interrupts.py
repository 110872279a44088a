"""Ctrl-C ends every kind of long call within a second, and callbacks are told of it and end it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from interrupts import ends_by_callback, ends_within_a_second

import ictd

CALLS = {
    "forward": ("ictd.forward(x, r, gamma=0.9, layers=400)", "x, r = np.random.default_rng(0).normal(size=(40, 3001, 8)), np.ones((40, 3000))"),
    "study": ("ictd.msve(tasks=200_000)", ""),
    "reproduction": ("ictd.reproduce(out=tempfile.mkdtemp())", "import tempfile"),
    "fit": (
        "ictd.SoftmaxTD(0.9).fit(x, y, episode=np.repeat(np.arange(1000), 20), truncated=np.tile([0] * 19 + [1], 1000))",
        "x, y = np.random.default_rng(0).normal(size=(20000, 6)), np.ones(20000)",
    ),
    "predict": (
        "model.predict(np.random.default_rng(0).normal(size=(4_000_000, 1)))",
        "x = np.random.default_rng(0).normal(size=(600, 1))\n"
        "model = ictd.KernelLSTD(0.5, temperature=0.5, ridge=0.1).fit(x, x[:, 0], episode=np.arange(600), terminated=np.ones(600))",
    ),
    "task": ("ictd.Task(np.full((4000, 4000), 1 / 4000), np.ones(4000), 0.9, np.ones((4000, 1)))", ""),
    "spectrum": ("task.pair_lambda_r", "task = ictd.task('dense', states=700)"),
    "similarities": ("ictd.similarities(np.ones((600, 600)))", ""),
    "least squares": ("ictd.td.least_squares_td(np.ones((4001, 3000)), np.ones(4000), gamma=0.9)", ""),
    "task as a file": ("task.to_json()", "task = ictd.task('dense', states=1200)"),
    "task of a text": ("ictd.Task.from_json(text)", 'text = \'{"transitions": [[\' + "0.1," * 40_000_000 + "0.1]]}"'),
    "block": ("[ictd.Transformer(0.9).as_block(5000) for _ in range(9)]", ""),
    # What is left after the first failure are n² numbers.
    "many similarities": ("ictd.td.nonparametric_td(np.ones((100_001, 1)), np.ones(100_000), kappa=lambda x, y: 1.0, gamma=0.9, layers=1)", ""),
    # A function that is compiled looks at no signals itself.
    "own similarity": ("ictd.td.nonparametric_td(np.ones((2001, 1)), np.ones(2000), kappa=np.vdot, gamma=0.9)", ""),
}


#: What waits for a file that nobody writes.
READERS = [
    "ictd.read_log(path)",
    "ictd.Context.read(path)",
    "ictd.Task.read(path)",
    "ictd.Transformer(0.9, params=path)",
    "ictd.task(path)",
    "ictd.msve(path)",
    "ictd.sweep(path, path + '-out')",
    "ictd.pretrain(path)",
    "ictd.print_config(path)",
    "ictd.pretrain(task=path)",
]

#: What looks whether to stop while it goes on by itself.
STOPPED = {
    "iterations": ("ictd.td.weighted_softmax_td(x, r, gamma=0.9, layers=30_000)", "x, r = np.random.default_rng(0).normal(size=(3001, 4)), np.ones(3000)"),
    "layers": (
        "ictd.Transformer(0.9, layers=2000).td_errors(context)",
        "context = ictd.Context(np.random.default_rng(0).normal(size=(20001, 4)), np.ones(20000))",
    ),
    "layers of a fit": (
        "ictd.SoftmaxTD(0.9, layers=10**6, temperature=1.0).fit(x, np.ones(2000), episode=np.repeat(np.arange(200), 10), terminated=np.tile([0] * 9 + [1], 200))",
        "x = np.random.default_rng(0).normal(size=(2000, 4))",
    ),
    "samples": ("ictd.neu(samples=10**6)", ""),
}


@pytest.mark.skipif(os.name == "nt", reason="files of another kind")
@pytest.mark.parametrize("call", READERS)
def test_ctrl_c_ends_waiting_for_a_file(call: str, tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    ends_within_a_second(call, f"path = {str(path)!r}")


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
@pytest.mark.parametrize("name", STOPPED)
def test_work_that_was_given_up_ends(name: str) -> None:
    """The processor is idle a while after the exception."""
    call, setup = STOPPED[name]
    code = f"""
import os, signal, threading, time
import numpy as np
import ictd
signal.signal(signal.SIGINT, signal.default_int_handler)
{setup}
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    {call}
    print("ended", flush=True)
except KeyboardInterrupt:
    time.sleep(1.5)
    begin = time.process_time()
    time.sleep(2.0)
    print("idle" if time.process_time() - begin < 0.2 else "at work", flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("idle\n", "")


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_a_signal_is_no_failure_of_an_array() -> None:
    """It comes while numbers are made of objects, where NumPy is first asked for them, and while a number is."""
    code = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import ictd

class Number:
    def __float__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
        return 1.0

for call in (
    lambda: ictd.forward([[Number()], [1.0]], [1.0], gamma=0.9, layers=1),
    lambda: ictd.forward([[1.0], [1.0]], [1.0], gamma=0.9, layers=1, step_size=Number()),
    lambda: ictd.forward([[1.0], [1.0]], [1.0], gamma=0.9, layers=1, step_size=[Number()]),
    lambda: ictd.Transformer(0.9, params=([[Number()]], [[1.0]])),
):
    try:
        call()
        print("ended")
    except KeyboardInterrupt:
        print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("interrupted\n" * 4, "")


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_a_signal_at_the_first_array_is_no_panic() -> None:
    code = """
import functools, os, signal
import ictd

def stop(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, stop)

class Features:
    # Nothing of it is Python: the signal is pending when the library makes its first array.
    __index__ = staticmethod(functools.partial(os.system, f"kill -TERM {os.getpid()}"))

try:
    ictd.Transformer(0.9)._inner.params(0, Features())
except KeyboardInterrupt:
    pass
print("goes on")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("goes on\n", "")


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_it_within_a_second(name: str) -> None:
    ends_within_a_second(*CALLS[name])


def test_callbacks_are_told_of_fits_and_evaluations() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20000, 6)), rng.normal(size=20000)
    rest = {"episode": np.repeat(np.arange(1000), 20), "truncated": np.tile([0] * 19 + [1], 1000)}
    assert ends_by_callback(lambda enough: ictd.SoftmaxTD(0.9).fit(x, y, **rest, callback=enough))["seconds"] >= 0
    log = ictd.Log(x, y, **rest)
    assert ends_by_callback(lambda enough: ictd.evaluate(log, 0.9, callback=enough))["seconds"] >= 0
