"""What Python adds to a prediction: `python tests/bench_estimators.py [ENGINE]`, ENGINE being the example `predict` of `ictd-lab`.

Prints microseconds of one call for one state of a model of ten transitions, and, where the engine is given, the ratio of a batch to the time that the
engine alone takes for it. Both are the fastest of many.
"""

from __future__ import annotations

import json
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


def batch(engine: str, rows: int) -> float:
    """Seconds of a batch over those of the engine."""
    rng = np.random.default_rng(0)
    folder = Path(tempfile.mkdtemp())
    X, y = rng.normal(size=(1000, 4)), rng.normal(size=1000)
    episode, ends = np.repeat(np.arange(100), 10), np.tile([0] * 9 + [1], 100)
    queries = rng.normal(size=(rows, 4))
    header = "x0,x1,x2,x3"
    full = np.column_stack([X, y, episode, ends])
    np.savetxt(folder / "log.csv", full, delimiter=",", header=f"{header},reward,episode,terminated", comments="", fmt=["%.17g"] * 5 + ["%d"] * 2)
    np.savetxt(folder / "queries.csv", queries, delimiter=",", header=header, comments="", fmt="%.17g")
    found = subprocess.run([engine, folder / "log.csv", folder / "queries.csv", "0.9"], check=True, capture_output=True, text=True).stdout
    alone = json.loads(found)
    model = ictd.SoftmaxTD(0.9, temperature=0.5, layers=16).fit(X, y, episode=episode, terminated=ends)
    assert abs(model.predict(queries)[0] - alone["first"]) < 1e-12
    return fastest(lambda: model.predict(queries), 15) / float(alone["seconds"])


if __name__ == "__main__":
    warnings.simplefilter("ignore", RefusedWarning)
    report = {"microseconds_of_one_state": round(one_state(), 2)}
    if len(sys.argv) > 1:
        report |= {f"ratio_of_{rows}_states": round(batch(sys.argv[1], rows), 3) for rows in (10_000, 100_000)}
    print(json.dumps(report))
