"""The machine that everything happens on: processes are started, found, waited for and killed here."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path


class Failed(Exception):
    """Something is not as it was promised."""


def check(holds, problem):
    if not holds:
        raise Failed(problem)


def until(condition, seconds, what):
    """Waits for a condition and returns what it came to."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        check(time.monotonic() < end, f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return found


class Cluster:
    """Daemons that are there for the length of a block, whatever happens in it or before it is reached."""

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()


class Lab:
    """A folder for everything that is written, the program, and chance."""

    def __init__(self, scratch, ictd, seed):
        self.scratch = scratch
        self.ictd = ictd
        self.random = random.Random(seed)

    def start(self, command, log, environment=None):
        """A process in the background, whose words are added to a file."""
        with open(log, "ab") as words:
            return subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                env={**os.environ, **(environment or {})},
                # A signal to one is none to the others.
                start_new_session=True,
            )

    def ask(self, command, environment=None):
        """A command to its end: its exit code and what it says."""
        return subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, **(environment or {})},
        )

    def workers(self, folder):
        """The processes that do units of the sweep in a folder, and which, whoever started them and on whichever node."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode().split("\0")
            except OSError:
                continue
            # Shells on their way to become one have the same words behind others.
            if words[0] == str(self.ictd) and "--index" in words and str(folder) in words:
                found[int(path.parent.name)] = words[words.index("--index") + 1]
        return found


def kill(pid):
    """Ends a process without a word; one that ended by itself is no matter."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end(process):
    """Ends a process of ours and waits until it is gone."""
    process.kill()
    process.wait()


def child_of(process):
    """The one child of a process that does nothing but wait for it."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return int(until(lambda: children.read_text().split(), 10, f"a child of {process.args[0]}")[0])
