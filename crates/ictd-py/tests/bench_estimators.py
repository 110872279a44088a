"""What Python adds to a prediction: `python tests/bench_estimators.py [ENGINE]`, ENGINE being the example `predict` of `ictd-lab`.

Prints microseconds of one call for one state of a model of ten transitions, the fastest of many, and, where the engine is given, the processor time of
batches over that of the engine alone: on a machine that does other things too, it says more than time on the wall.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import ictd
from ictd.errors import RefusedWarning


def fastest(work: object, times: int) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()  # type: ignore[operator]
        found.append(time.perf_counter() - start)
    return min(found)


def one_state() -> float:
    """Microseconds of one call."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(11, 4))
    model = ictd.SoftmaxTD(0.9).fit(X, np.append(rng.normal(size=10), np.nan))
    query = X[:1].copy()
    return 1e6 / 100 * fastest(lambda: [model.predict(query) for _ in range(100)], 100)


def batch(engine: str, rows: int, times: int) -> float:
    """Processor time of batches over that of the engine."""
    rng = np.random.default_rng(0)
    folder = Path(tempfile.mkdtemp())
    X, y = rng.normal(size=(1000, 4)), rng.normal(size=1000)
    episode, ends = np.repeat(np.arange(100), 10), np.tile([0] * 9 + [1], 100)
    queries = rng.normal(size=(rows, 4))
    header = "x0,x1,x2,x3"
    full = np.column_stack([X, y, episode, ends])
    np.savetxt(folder / "log.csv", full, delimiter=",", header=f"{header},reward,episode,terminated", comments="", fmt=["%.17g"] * 5 + ["%d"] * 2)
    np.savetxt(folder / "queries.csv", queries, delimiter=",", header=header, comments="", fmt="%.17g")

    def processor(repeats: int) -> float:
        # All else that the engine does, as reading its files, is in both of two runs.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([engine, folder / "log.csv", folder / "queries.csv", "0.9", str(repeats)], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    alone = processor(times + 1) - processor(1)
    model = ictd.SoftmaxTD(0.9, temperature=0.5, layers=16).fit(X, y, episode=episode, terminated=ends)
    model.predict(queries)
    start = time.process_time()
    for _ in range(times):
        model.predict(queries)
    return (time.process_time() - start) / alone


if __name__ == "__main__":
    warnings.simplefilter("ignore", RefusedWarning)
    report = {"microseconds_of_one_state": round(one_state(), 2)}
    if len(sys.argv) > 1:
        report |= {f"ratio_of_{rows}_states": round(batch(sys.argv[1], rows, 3_000_000 // rows), 3) for rows in (10_000, 100_000)}
    print(json.dumps(report))
