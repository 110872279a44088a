"""Sweeps on real clusters that are disturbed, for `cargo xtask cluster`.

    python run.py ICTD [--seed SEED] [--keep] [SCENARIO ...]

One plan is swept by threads of this machine, by a Slurm and by a HyperQueue that are started here, while workers, nodes, schedulers
and the command itself are killed at random moments. Every time the files at the end have to be the same to the byte, and no run may
have two records. The table of what was done goes to standard output; the exit code is 1 when something was not as it should be.

All of it happens in namespaces of its own: no daemon can be reached from elsewhere, and none outlives this program, however it ends.
"""

import argparse
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hq import WORKERS, HyperQueue
from lab import Failed, Lab, check, end, kill, until
from slurm import NODES, REQUEUED, SAVED, Slurm
from sweeps import RUNS, Sweep

# Units of work that an engine starts: a dozen, three for each of the workers that run at once.
CHUNK = 10
# Seconds in which the command ends when it is told to, on a machine that is busy.
PROMPT = 2.0


@dataclasses.dataclass
class Scenario:
    """A sweep that something happens to."""

    name: str
    engine: str
    # What is killed, as the table says it.
    what: str
    happen: object


@dataclasses.dataclass
class Context:
    """What a scenario may use."""

    lab: Lab
    name: str
    # What the reference has in its files; nothing yet for the reference itself.
    expected: dict
    # How often something was killed.
    kills: int = 0

    def moments(self, number):
        """Shares of all runs at which something happens, in order."""
        return sorted(self.lab.random.uniform(0.05, 0.9) for _ in range(number))

    def pause(self, longest):
        time.sleep(self.lab.random.uniform(0, longest))

    def kill_worker(self, pids):
        """Ends one of some processes."""
        if pids:
            kill(self.lab.random.choice(pids))
            self.kills += 1

    def kill_command(self, sweep):
        """Ends the command without a word and gives it again."""
        end(sweep.process)
        self.kills += 1
        sweep.start()


def sweep_with(context, engine, environment=None):
    options = ["--engine", engine, "--chunk", CHUNK] if engine != "local" else []
    return Sweep(context.lab, context.name, options, environment)


def refused(sweep):
    """A second sweep in the same folder says so in one line."""
    second = subprocess.run(
        [str(word) for word in sweep.command(*sweep.options)], capture_output=True, text=True, env={**os.environ, **(sweep.environment or {})}
    )
    check_one_line(second.returncode, second.stderr, (1, 2), "in use")


def check_one_line(code, words, codes, part):
    """An error is one line that says what is wrong."""
    lines = words.strip().splitlines()
    is_error = lines and lines[-1].startswith("error: ") and part in lines[-1]
    only = sum(line.startswith("error") for line in lines) == 1
    check(code in codes and is_error and only, f"ended with {code} and '{words.strip()}', expected one line that has '{part}'")
