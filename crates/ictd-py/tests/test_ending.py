"""The interpreter ends as its program says while Python that the library called is still running."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

START = """
import os, signal, sys, threading, time
import ictd, numpy as np

def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))

class Drawn:
    count = 0
    def draw(self, seed, index):
        Drawn.count += 1
        if Drawn.count > 1:
            self.work()
        return ictd.task("boyan", index=index)

class Slow(Drawn):
    def work(self): busy(0.7)

class Spinning(Drawn):
    def work(self):
        while True:
            pass

class Stubborn(Drawn):
    def work(self):
        while True:
            try:
                busy(60)
            except BaseException:
                pass

class Sleeping(Drawn):
    def work(self): time.sleep(1.3)

def fail(**standing):
    raise ZeroDivisionError

def left(call):
    threading.Thread(target=call, daemon=True).start()
    time.sleep(0.9)
    sys.exit(3)

def interrupted(call):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.6, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        call()
    except KeyboardInterrupt:
        sys.exit(3)

def failing(call):
    try:
        call()
    except ZeroDivisionError:
        sys.exit(3)

many = np.random.default_rng(0).normal(size=(20000, 1))
few = many[:400]
"""

ENDS = {
    "a slow draw, interrupted": "interrupted(lambda: ictd.pretrain(task=Slow(), seeds=2))",
    "a slow draw, with a callback that fails": "failing(lambda: ictd.pretrain(task=Slow(), seeds=2, callback=fail))",
    "a spinning draw, interrupted": "interrupted(lambda: ictd.msve(Spinning(), tasks=200))",
    "a spinning draw of a daemon": "left(lambda: ictd.msve(Spinning(), tasks=200))",
    "a draw that lets itself not be stopped": "interrupted(lambda: ictd.msve(Stubborn(), tasks=200))",
    "a draw that sleeps": "interrupted(lambda: ictd.regimes(Sleeping()))",
    "a callback that sleeps": "left(lambda: ictd.pretrain(seeds=40, callback=lambda **_: time.sleep(0.3)))",
    "a callback that spins": "left(lambda: ictd.pretrain(seeds=40, callback=lambda **_: busy(60)))",
    "a similarity": "left(lambda: ictd.td.nonparametric_td(many, np.ones(19999), kappa=lambda a, b: 1.0, gamma=0.9))",
    "work of a daemon": "left(lambda: ictd.pretrain(seeds=40))",
    "many small calls of a daemon": "left(lambda: [ictd.forward(few, np.ones(399), gamma=0.9, layers=10) for _ in range(10**6)])",
    "many conversions of a daemon": "left(lambda: [ictd.forward(few.tolist(), [1.0] * 399, gamma=0.9, layers=1) for _ in range(10**6)])",
}


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
@pytest.mark.parametrize("name", ENDS)
def test_the_exit_status_is_that_of_the_program(name: str) -> None:
    # How soon threads want the lock again is a matter of luck.
    for _ in range(2):
        begin = time.monotonic()
        done = subprocess.run([sys.executable, "-c", START + ENDS[name]], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (3, "")
        assert time.monotonic() - begin < 20


def test_calls_go_on_in_what_is_done_at_exit() -> None:
    code = """
import atexit
atexit.register(lambda: print(ictd.forward([[1.0], [1.0]], [1.0], gamma=0.9, layers=1).shape, len(ictd.msve(tasks=2)) > 0))
import ictd
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("(2, 2) True\n", "")


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_a_draw_that_is_given_up_leaves_the_processor() -> None:
    code = START + """
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.6, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    ictd.msve(Spinning(), tasks=200)
except KeyboardInterrupt:
    time.sleep(0.5)
    begin = time.process_time()
    time.sleep(1.0)
    print(time.process_time() - begin < 0.5)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_a_draw_that_fails_ends_the_other_seeds() -> None:
    code = START + """
class Failing:
    def draw(self, seed, index):
        if index and seed == 1:
            raise ZeroDivisionError
        if index:
            time.sleep(0.2)
        return ictd.task("boyan", index=index)
begin = time.monotonic()
try:
    ictd.pretrain(task=Failing(), seeds=2, threads=2)
except ZeroDivisionError:
    print(time.monotonic() - begin < 5)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_process_that_forked_waits_for_none_of_its_parents_threads() -> None:
    code = """
import atexit, os, sys, threading, time
times = []
atexit.register(lambda: os._exit(0 if len(times) == 1 and time.monotonic() - times[0] < 0.5 else 1))
import ictd
threading.Thread(target=lambda: ictd.pretrain(seeds=40, callback=lambda **_: time.sleep(60)), daemon=True).start()
time.sleep(0.9)
child = os.fork()
if child == 0:
    assert ictd.forward([[1.0], [1.0]], [1.0], gamma=0.9, layers=1).shape == (2, 2)
    atexit.register(lambda: times.append(time.monotonic()))
    sys.exit()
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
