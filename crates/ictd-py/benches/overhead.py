"""What Python costs: calls on small contexts, batches beside the engine, pretraining beside the command line.

    python overhead.py ICTD ENGINE

ICTD is the command line, ENGINE the example `predict` of `ictd-lab`, both built for release. Fails where a criterion does not hold. Times are
the best of several; where two programs are compared they take turns, so that both meet the same machine.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import timeit
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ictd
from ictd.errors import RefusedWarning

CALL = 20e-6
"""Seconds that a call on ten transitions may take."""
BATCH = 1.05
"""Times the engine's own processor time that batches may take."""
PRETRAIN = 1.10
"""Times the command line's time that pretraining may take."""


def best(work: Callable[[], object], number: int, repeat: int = 7) -> float:
    return min(timeit.repeat(work, number=number, repeat=repeat)) / number


def batch(engine: str, rows: int, times: int) -> float:
    """Processor time of predictions of many states over that of the engine."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 4)), rng.normal(size=1000)
    episode, ends = np.repeat(np.arange(100), 10), np.tile([0] * 9 + [1], 100)
    queries = rng.normal(size=(rows, 4))
    with tempfile.TemporaryDirectory() as folder:
        log, asked = Path(folder, "log.csv"), Path(folder, "queries.csv")
        full, header = np.column_stack([X, y, episode, ends]), "x0,x1,x2,x3"
        np.savetxt(log, full, delimiter=",", header=f"{header},reward,episode,terminated", comments="", fmt=["%.17g"] * 5 + ["%d"] * 2)
        np.savetxt(asked, queries, delimiter=",", header=header, comments="", fmt="%.17g")

        def processor(repeats: int) -> float:
            # All else that the engine does, as reading its files, is in both of two runs.
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([engine, log, asked, "0.9", str(repeats)], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        alone = processor(times + 1) - processor(1)
    model = ictd.SoftmaxTD(0.9, temperature=0.5, layers=16).fit(X, y, episode=episode, terminated=ends)
    model.predict(queries)
    start = time.process_time()
    for _ in range(times):
        model.predict(queries)
    return (time.process_time() - start) / alone


def pretrain(binary: str, times: int) -> float:
    """Time of training the paper's preset over that of the command line."""
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "pretrain", "--preset", "paper", "--seeds", "0..5", "--fresh", "--json", "--out", folder]
        for _ in range(times):
            theirs.append(json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["train_seconds"])
            ours.append(ictd.pretrain("paper", seeds=range(5), out=folder, fresh=True, progress=False).train_seconds)
    return min(ours) / min(theirs)


def main(binary: str, engine: str) -> int:
    warnings.simplefilter("ignore", RefusedWarning)
    rng = np.random.default_rng(0)
    features, rewards = rng.normal(size=(11, 4)), rng.normal(size=10)
    model = ictd.SoftmaxTD(0.9).fit(features, np.append(rewards, np.nan))
    state = features[:1].copy()
    found = [
        ("`forward` on 10 transitions, 15 layers, seconds", best(lambda: ictd.forward(features, rewards, gamma=0.9), 2000), CALL),
        ("`predict` of one state, fitted on 10 transitions, seconds", best(lambda: model.predict(state), 2000), CALL),
        ("`predict` of 10,000 states, over the engine", batch(engine, 10_000, 300), BATCH),
        ("`predict` of 100,000 states, over the engine", batch(engine, 100_000, 30), BATCH),
        ("`pretrain`, the paper's preset, over the command line", pretrain(binary, 10), PRETRAIN),
    ]
    print("| what | measured | at most | |\n|---|---:|---:|---|")
    for what, measured, most in found:
        print(f"| {what} | {measured:.3g} | {most:.3g} | {'holds' if measured <= most else 'FAILS'} |")
    return 0 if all(measured <= most for _, measured, most in found) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
