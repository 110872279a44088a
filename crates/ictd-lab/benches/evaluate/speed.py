"""Long files: ten million rows of 64 states, and 50,000 rows of features that are hard to scale, with gaps."""

import csv
import math
import re
import sys

import numpy as np

from common import WORK, Evaluation, Run, say

ROWS, STATES, REPEATS = 10_000_000, 64, 3
WILD_ROWS, FEATURES, MISSING = 50_000, 6, 0.08


def study(criteria):
    long_file(criteria)
    wild_file(criteria)


def walks(rng, rows, stop):
    """Numbers of episodes and of steps in them, episodes one after the other; each step is the last with probability `stop`."""
    lengths = rng.geometric(stop, int(2 * rows * stop) + 10)
    lengths = lengths[: np.searchsorted(np.cumsum(lengths), rows) + 1]
    lengths[-1] -= lengths.sum() - rows
    episode = np.repeat(np.arange(len(lengths)), lengths)
    step = np.arange(rows) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return episode, step, lengths


def write_long(path):
    say(f"writing {ROWS:,} rows")
    rng = np.random.default_rng(0)
    episode, step, lengths = walks(rng, ROWS, 1 / 100)
    # A random walk on a ring, drawn for all rows at once: the state is the sum of steps since the episode began.
    moves = rng.integers(-2, 4, ROWS)
    moves[step == 0] = rng.integers(0, STATES, len(lengths))
    total = np.cumsum(moves)
    first = np.cumsum(lengths) - lengths
    state = (total - np.repeat(total[first] - moves[first], lengths)) % STATES
    reward = np.round(np.sin(state / 10) + rng.normal(0, 1, ROWS), 3)
    last = np.append(episode[1:] != episode[:-1], True).astype(int)
    with open(path, "w") as file:
        file.write("episode,t,state,reward,terminated\n")
        for begin in range(0, ROWS, 1_000_000):
            part = slice(begin, begin + 1_000_000)
            columns = [x[part].tolist() for x in (episode, step, state, reward, last)]
            file.writelines(f"{e},{t},{s},{r},{z}\n" for e, t, s, r, z in zip(*columns))


def long_file(criteria):
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / "long.csv"
    write_long(path)
    read = "import sys, time, pandas; t = time.perf_counter(); n = len(pandas.read_csv(sys.argv[1])); print(time.perf_counter() - t, n)"
    ours, theirs = [], []
    for repeat in range(REPEATS):
        say(f"{ROWS:,} rows, {repeat + 1} of {REPEATS}")
        ours.append(Evaluation(path, 0.9))
        theirs.append(Run([sys.executable, "-c", read, path]))
    pandas_seconds = min(float(run.out.split()[0]) for run in theirs)
    fastest, peak = min(run.seconds for run in ours), max(run.peak for run in ours)
    print(f"\n## {ROWS:,} rows, {STATES} states, CSV of {path.stat().st_size / 2**20:.0f} MiB, best of {REPEATS}\n")
    print("| | seconds | peak MiB |\n|---|---:|---:|")
    print(f"| `ictd evaluate`: read, tune, fit, intervals, judgement | {fastest:.2f} | {peak:.0f} |")
    print(f"| `pandas.read_csv`: read | {pandas_seconds:.2f} | {max(run.peak for run in theirs):.0f} |")
    print(f"| ratio | {fastest / pandas_seconds:.2f} | {peak / max(run.peak for run in theirs):.2f} |\n")
    criteria.check(len(ours[0].rows) == STATES and ours[0].answer["counts"]["rows"] == ROWS, f"{STATES} states out of {ROWS:,} rows")
    criteria.check(fastest <= 3, f"{fastest:.2f} s, at most 3 s")
    criteria.check(peak <= 300, f"{peak:.0f} MiB, at most 300 MiB")


def write_wild(path):
    """Customers with six features that follow a slow latent state, between 1e-6 and 1e9, with heavy tails."""
    rng = np.random.default_rng(1)
    episode, step, lengths = walks(rng, WILD_ROWS, 1 / 25)
    latent = np.empty((WILD_ROWS, 3))
    for row in range(WILD_ROWS):
        noise = rng.normal(size=3)
        latent[row] = noise if step[row] == 0 else 0.9 * latent[row - 1] + math.sqrt(0.19) * noise
    a, b, c = latent.T
    features = np.column_stack([
        1e-6 * a,
        1e9 * np.exp(2 * b),
        1e3 * c + 1e2 * rng.standard_t(1.5, WILD_ROWS),
        np.floor(np.exp(a + b)),
        0.5 + 1e-3 * (b - c),
        np.exp(-5 * c),
    ])
    reward = np.round(np.maximum(0, 10 + 5 * a + 2 * b * c + rng.normal(0, 3, WILD_ROWS)), 2)
    missing = rng.random(features.shape) < MISSING
    last = np.append(episode[1:] != episode[:-1], True)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer", "t", *(f"x_{k}" for k in range(FEATURES)), "reward", "terminated"])
        for k in range(WILD_ROWS):
            cells = ["" if gap else repr(float(x)) for x, gap in zip(features[k], missing[k])]
            writer.writerow([f"c{episode[k]:05}", step[k], *cells, reward[k], int(last[k])])
    return reward, len(lengths)


def wild_file(criteria):
    path, gamma = WORK / "wild.csv", 0.95
    reward, customers = write_wild(path)
    low, high = min(0.0, reward.min() / (1 - gamma)), max(0.0, reward.max() / (1 - gamma))
    print(f"\n## {WILD_ROWS:,} rows, {FEATURES} features from 1e-6 to 1e9, {customers:,} customers, {MISSING:.0%} of cells missing\n")
    print("| `--missing` | seconds | peak MiB | rows | lines of progress | judgement | values | allowed by rewards |")
    print("|---|---:|---:|---:|---:|---|---|---|")
    runs = {}
    for missing in ("mean", "drop"):
        say(f"{WILD_ROWS:,} rows, --missing {missing}")
        run = runs[missing] = Evaluation(path, gamma, "--id", "customer", "--missing", missing)
        run.lines = len(re.findall(r" (?:so far|left)$", run.err, re.MULTILINE))
        values = run.column("value")
        print(
            f"| `{missing}` | {run.seconds:.1f} | {run.peak:.0f} | {len(values):,} | {run.lines} | {run.judgement} "
            f"| {min(values):.2f} to {max(values):.2f} | {low:.0f} to {high:.0f} |"
        )
    print()
    for missing, run in runs.items():
        for reason in run.reasons:
            print(f"> `{missing}`: {reason}")
    print()
    for missing, run in runs.items():
        values = run.column("value")
        inside = all(low <= v <= high for v in values)
        criteria.check(run.seconds <= 60, f"`--missing {missing}`: {run.seconds:.1f} s, at most 60 s")
        # Work of less than two seconds says nothing.
        criteria.check(run.lines > 0 or run.seconds < 2, f"`--missing {missing}`: {run.lines} lines of progress")
        criteria.check(inside or run.judgement != "trust", f"`--missing {missing}`: every value is one that rewards allow, or there is a caution")
