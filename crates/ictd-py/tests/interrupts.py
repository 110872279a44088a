"""How soon calls end that Ctrl-C or a callback ends: within a second, and what that costs of a call that does nothing on this machine."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

#: Another program may have had the machine for a while: an attempt that takes too long is made again.
ATTEMPTS = 3


def _stopped(setup: str, call: str) -> float:
    """Seconds from an interrupt to its exception."""
    code = f"""
import os, threading
import numpy as np
import ictd
{setup}
print("on", flush=True)
try:
    {call}
    print("ended", flush=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
os._exit(0)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "on\n", "the set-up failed"
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        said = process.stdout.readline()
        taken = time.monotonic() - begin
    assert said == "stopped\n", "the call is too short to be interrupted"
    return taken


@cache
def least() -> float:
    """What an interrupt of a call costs that does nothing."""
    return max(_stopped("", "threading.Event().wait(60)") for _ in range(2))


def ends_within_a_second(call: str, setup: str = "") -> None:
    """Fails where Ctrl-C does not end a call, in an interpreter of its own."""
    taken = []
    while len(taken) < ATTEMPTS:
        taken.append(_stopped(setup, call))
        if taken[-1] < 1.0 + least():
            return
    pytest.fail(f"Ctrl-C took {taken} s")


class Enough(Exception):
    """What a callback of these tests raises."""


def ends_by_callback(call: Callable[[Callable[..., object]], object]) -> dict[str, Any]:
    """What the callback of a call is told first; fails where what it raises does not end the call. Without a callback it shall take minutes."""
    taken: list[float] = []
    while True:
        told: list[tuple[float, dict[str, Any]]] = []

        def enough(**standing: object) -> None:
            told.append((time.monotonic(), standing))
            raise Enough("now")

        with pytest.raises(Enough, match="now"):
            call(enough)
        assert len(told) == 1 and set(told[0][1]) == {"name", "done", "total", "unit", "seconds"}
        taken.append(time.monotonic() - told[0][0])
        if taken[-1] < 1.0 + least():
            return told[0][1]
        if len(taken) == ATTEMPTS:
            pytest.fail(f"a callback that raised took {taken} s")
