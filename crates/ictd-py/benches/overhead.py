"""What Python costs: calls on small contexts, batches beside the engine, pretraining beside the command line.

    python overhead.py ICTD

Fails where a criterion does not hold. Times are the best of several, one kind after the other and again, so that both meet the same machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable

import numpy as np

import ictd

CALL = 20e-6
"""Seconds that a call on ten transitions may take."""
BATCH = 1.05
"""Times the engine's own time that batches may take."""
PRETRAIN = 1.10
"""Times the command line's time that pretraining may take."""


def best(work: Callable[[], object], number: int, repeat: int = 7) -> float:
    return min(timeit.repeat(work, number=number, repeat=repeat)) / number


def main(binary: str) -> int:
    rng = np.random.default_rng(0)
    rows: list[tuple[str, str, str, bool]] = []

    features, rewards = rng.normal(size=(11, 4)), rng.normal(size=10)
    call = best(lambda: ictd.forward(features, rewards, gamma=0.9), 2000)
    rows.append(("forward, 10 transitions, 15 layers", f"{1e6 * call:.1f} µs", f"at most {1e6 * CALL:.0f} µs", call <= CALL))

    model = ictd.SoftmaxTD(0.9, temperature=1.0, layers=15).fit(features[:10], rewards)
    state = features[:1]
    call = best(lambda: model.predict(state), 2000)
    rows.append(("predict, fitted on 10 transitions, one state", f"{1e6 * call:.1f} µs", f"at most {1e6 * CALL:.0f} µs", call <= CALL))

    batch, pay = rng.normal(size=(20_000, 11, 4)), rng.normal(size=(20_000, 10))
    seconds = best(lambda: ictd.forward(batch, pay, gamma=0.9, threads=1), 1, 5)
    engine = ictd.engine_seconds(batch, pay, gamma=0.9, repeat=5)
    ratio = seconds / engine
    rows.append(("20,000 contexts of 10 transitions, over the engine", f"{ratio:.3f}", f"at most {BATCH}", ratio <= BATCH))

    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "pretrain", "--preset", "paper", "--seeds", "0..5", "--fresh", "--json", "--out", folder]
        for _ in range(5):
            theirs.append(json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["train_seconds"])
            ours.append(ictd.pretrain("paper", seeds=range(5), progress=False).train_seconds)
    ratio = min(ours) / min(theirs)
    rows.append(("pretrain, paper preset, over the command line", f"{ratio:.3f}", f"at most {PRETRAIN}", ratio <= PRETRAIN))

    print("| what | measured | criterion | |\n|---|---:|---:|---|")
    for what, measured, criterion, holds in rows:
        print(f"| {what} | {measured} | {criterion} | {'holds' if holds else 'FAILS'} |")
    return 0 if all(holds for *_, holds in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
