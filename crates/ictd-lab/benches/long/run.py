"""Long contexts of distinct states, for `cargo xtask bench long [exact|pivots|growth|certify]`.

Every number comes from the program as a user calls it, reading its input and printing included; PyTorch runs in this process, on the same
cores, with its inputs in memory, so that it is compared with the layers alone: the time of a call less that of one without layers. Tables go to standard output, progress to standard error; the exit code is 1 when a criterion
does not hold.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

ICTD = os.path.join("target", "release", "ictd")
GAMMA = 0.9
LAYERS = 10


def say(text):
    print(text, file=sys.stderr, flush=True)


class Criteria:
    def __init__(self):
        self.all_hold = True

    def check(self, name, holds):
        print(f"- {'holds' if holds else 'DOES NOT HOLD'}: {name}", flush=True)
        self.all_hold &= bool(holds)


def context(folder, n, d):
    """Features uniform in (-1, 1)^d, rewards a linear function of them and noise, as an NPZ file."""
    path = os.path.join(folder, f"{n}_{d}.npz")
    if not os.path.exists(path):
        random = np.random.default_rng(n + d)
        features = random.uniform(-1, 1, (n + 1, d))
        rewards = 0.1 * features[:n] @ random.normal(size=d) + 0.01 * random.normal(size=n)
        np.savez(path, features=features, rewards=rewards)
    return path


def ictd(*arguments, times=1):
    """Standard output, the shortest wall-clock time, and the largest memory in bytes."""
    best, memory = float("inf"), 0
    for _ in range(times):
        start = time.perf_counter()
        process = subprocess.Popen([ICTD, *arguments, "--json", "--quiet"], stdout=subprocess.PIPE)
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        best, memory = min(best, time.perf_counter() - start), max(memory, 1024 * usage.ru_maxrss)
        # 3 says that values should not be relied on, not that they are missing.
        if process.returncode not in (0, 3):
            raise SystemExit(f"{arguments}: exit code {process.returncode}")
    return text, best, memory


def numbers(text, key, until):
    """The rows of numbers of a key, without parsing a gigabyte of JSON into objects."""
    begin = text.index(f'"{key}":[['.encode()) + len(key) + 5
    end = text.index(f"]],{until}".encode() if until else b"]]", begin)
    rows = text[begin:end].split(b"],[")
    return np.array([np.fromstring(row.decode(), sep=",") for row in rows])


def forward(path, layers, *more, times=1):
    return ictd("forward", "--input", path, "--layers", str(layers), "--gamma", str(GAMMA), *more, times=times)


def torch_seconds(path, layers, dtype, times):
    """Layers of attention with PyTorch's scaled_dot_product_attention, and the values they end with."""
    import torch

    torch.set_num_threads(os.cpu_count())
    data = np.load(path)
    x = torch.tensor(data["features"], dtype=dtype)
    r = torch.tensor(data["rewards"], dtype=dtype)
    n, d = x.shape[0] - 1, x.shape[1]
    attend = torch.nn.functional.scaled_dot_product_attention
    # As many columns of values as of keys: only then PyTorch does not form the n x n matrix.
    padded = torch.zeros(n, d, dtype=dtype)
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        v = torch.zeros(n + 1, dtype=dtype)
        with torch.no_grad():
            for _ in range(layers):
                padded[:, 0] = r + GAMMA * v[1:] - v[:n]
                v = v + attend(x[None, None], x[None, None, :n], padded[None, None], scale=1.0)[0, 0, :, 0]
        best = min(best, time.perf_counter() - start)
    return best, v.double().numpy()


def exact(folder, criteria):
    import torch

    print(f"\n## Exact layers against PyTorch {torch.__version__}, {os.cpu_count()} cores, {LAYERS} layers\n")
    print("| n | d | precision | whole call, s | its layers, s | PyTorch, s | ratio to layers | to the whole call | error of ictd | error of PyTorch |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    held = []
    for n in (20_000, 100_000):
        for d in (4, 16):
            path, times = context(folder, n, d), 3 if n < 50_000 else 1
            say(f"n = {n}, d = {d}")
            text, _, _ = forward(path, LAYERS, "--precision", "double")
            reference = numbers(text, "values", '"targets"')[-1]
            error = lambda v: np.abs(v - reference).max() / np.abs(reference).max()
            for precision, dtype, least in (("single", torch.float32, 5), ("double", torch.float64, 3)):
                before = forward(path, LAYERS, "--precision", precision, "--last", times=times)[1]
                theirs, values = torch_seconds(path, LAYERS, dtype, times)
                after = forward(path, LAYERS, "--precision", precision, "--last", times=times)[1]
                ours = min(before, after)
                layers = ours - forward(path, 0, "--precision", precision, "--last", times=times)[1]
                text, _, _ = forward(path, LAYERS, "--precision", precision)
                own = error(numbers(text, "values", '"targets"')[-1])
                print(f"| {n} | {d} | {precision} | {ours:.3f} | {layers:.3f} | {theirs:.3f} | {theirs / layers:.1f} | {theirs / ours:.1f} | {own:.1e} | {error(values):.1e} |", flush=True)
                held.append((f"n = {n}, d = {d}, {precision}: at least {least} times PyTorch", theirs / layers >= least))
                held.append((f"n = {n}, d = {d}, {precision}: relative error at most 1e-6", own <= 1e-6))
    print()
    for name, holds in held:
        criteria.check(name, holds)


def pivots(folder, criteria):
    n, d, layers, tolerance = 1_000_000, 4, 15, 1e-4
    print(f"\n## A million states: {layers} layers, tolerance {tolerance:g}\n")
    path = context(folder, n, d)
    arguments = [path, layers, "--tolerance", str(tolerance)]
    text, seconds, memory = forward(*arguments, "--last")
    found = json.loads(text)
    known = found["approximation"]
    print(f"{seconds:.1f} s, {memory / 2**30:.2f} GiB; route {found['route']['name']}: {found['route']['reason']}")
    print(f"rank {known['rank']}, column error bound {known['column_error_bound']:.1e}, value error bound {known['value_error_bound']:.1e}\n")
    say("columns written out")
    text, _, _ = forward(*arguments)
    v = numbers(text, "values", '"targets"')
    data = np.load(path)
    x, r = data["features"], data["rewards"]
    steps = (0, layers // 2, layers - 1)
    errors = np.stack([r + GAMMA * v[l][1:] - v[l][:n] for l in steps], axis=1)
    columns = np.random.default_rng(0).choice(n + 1, 1000, replace=False)
    worst = 0.0
    for part in np.array_split(columns, 50):
        weights = np.exp(x[:n] @ x[part].T)
        change = (weights.T @ errors) / weights.sum(axis=0)[:, None]
        taken = np.stack([v[l + 1][part] - v[l][part] for l in steps], axis=1)
        worst = max(worst, (np.abs(change - taken) / np.abs(errors).max(axis=0)).max())
    print(f"largest error of 1000 columns written out, in layers {', '.join(str(l + 1) for l in steps)}: {worst:.1e}\n")
    criteria.check("at most 30 s", seconds <= 30)
    criteria.check("at most 4 GiB", memory <= 4 * 2**30)
    criteria.check("columns are off by less than the bound", worst <= known["column_error_bound"] <= tolerance)


def growth(folder, criteria):
    print("\n## Growth: seconds for 15 layers, d = 4 (one layer for a million states computed exactly)\n")
    print("| n | exact, double | exact, single | pivots, 1e-4 | rank | value error bound |")
    print("|---:|---:|---:|---:|---:|---:|")
    for n in (1_000, 10_000, 100_000, 1_000_000):
        say(f"n = {n}")
        path, layers = context(folder, n, 4), 15 if n < 1_000_000 else 1
        double = forward(path, layers, "--precision", "double", "--last")[1] if n < 1_000_000 else None
        single = forward(path, layers, "--precision", "single", "--last")[1]
        text, seconds, _ = forward(path, 15, "--tolerance", "1e-4", "--last")
        known = json.loads(text).get("approximation")
        rank, bound = (known["rank"], f"{known['value_error_bound']:.1e}") if known else ("exact", "")
        text = "" if double is None else f"{double:.2f}"
        print(f"| {n} | {text} | {single:.2f} | {seconds:.2f} | {rank} | {bound} |", flush=True)


def certify(folder, criteria):
    print("\n## Certificates of 50,000 distinct states\n")
    print("| kernel | temperature | seconds | status | residual |")
    print("|---|---:|---:|---|---:|")
    path = context(folder, 50_000, 4)
    for kernel, temperature in (("softmax", "1"), ("rbf", "0.1")):
        arguments = ["certify", "--input", path, "--gamma", str(GAMMA), "--kernel", kernel, "--temperature", temperature]
        text, seconds, _ = ictd(*arguments)
        found = json.loads(text)
        residual = found["spectrum"]["residual"]
        print(f"| {kernel} | {temperature} | {seconds:.1f} | {found['status']} | {residual:.1e} |", flush=True)
        criteria.check(f"{kernel}: a verdict with a residual within 60 s", seconds <= 60)


STUDIES = {"exact": exact, "pivots": pivots, "growth": growth, "certify": certify}


def main():
    wanted = sys.argv[1:] or list(STUDIES)
    unknown = [name for name in wanted if name not in STUDIES]
    if unknown:
        raise SystemExit(f"found study '{unknown[0]}', expected one of {', '.join(STUDIES)}")
    criteria = Criteria()
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            start = time.perf_counter()
            STUDIES[name](folder, criteria)
            say(f"{name}: {time.perf_counter() - start:.0f} s")
    sys.exit(0 if criteria.all_hold else 1)


if __name__ == "__main__":
    main()
