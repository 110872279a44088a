"""The predecessor's experiments in PyTorch, prompt by prompt, as a peer for `cargo xtask bench predecessor`.

A few tasks of each of the nine experiments are trained with the layer as it is written, one prompt at a time, automatic differentiation
and Adam; seconds per task are then extrapolated to 10 seeds of 5000 tasks, two at a time on two cores. Measuring is left out, which
favours this side. Prints a table and one line of JSON with the seconds of all.

    python predecessor_torch.py [TASKS]
"""

import json
import sys
import time

import torch

GAMMA, BATCHES, BATCH = 0.9, 5, 64
TASKS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
SEEDS, ALL_TASKS, CORES = 10, 5000, 2
STANDARD = {"d": 4, "m": 10, "n": 30, "layers": 3, "tied": True, "softmax": False, "representable": False}
EXPERIMENTS = {
    "linear, 3 tied layers": {},
    "linear, 2 tied layers": {"layers": 2},
    "linear, 4 tied layers": {"layers": 4},
    "linear, 3 layers of their own": {"tied": False},
    "linear, 2 layers of their own": {"tied": False, "layers": 2},
    "linear, 4 layers of their own": {"tied": False, "layers": 4},
    "linear, 8 features, 20 states, n = 60": {"d": 8, "m": 20, "n": 60},
    "softmax, 3 tied layers": {"softmax": True},
    "softmax, values linear in the features": {"softmax": True, "representable": True},
}


class Chain:
    """A random Boyan chain."""

    def __init__(self, d, m, representable):
        self.features = 2 * torch.rand(m, d) - 1
        self.p = torch.zeros(m, m)
        ahead = torch.rand(m - 2)
        for i in range(m - 2):
            self.p[i, i + 1], self.p[i, i + 2] = ahead[i], 1 - ahead[i]
        self.p[m - 2, m - 1] = 1
        restart = torch.rand(m)
        self.p[m - 1] = restart / restart.sum()
        self.start = torch.rand(m)
        if representable:
            values = self.features @ (2 * torch.rand(d) - 1)
            self.rewards = values - GAMMA * self.p @ values
        else:
            self.rewards = 2 * torch.rand(m) - 1

    def walk(self, length):
        states = [int(torch.multinomial(self.start, 1))]
        while len(states) < length:
            states.append(int(torch.multinomial(self.p[states[-1]], 1)))
        return states


def prompt(chain, states, n, d):
    here, after = chain.features[states[:n]], chain.features[states[1:n + 1]]
    context = torch.cat([here.T, GAMMA * after.T, chain.rewards[states[:n]][None]])
    query = torch.cat([chain.features[states[n + 1]], torch.zeros(d + 1)])
    return torch.cat([context, query[:, None]], dim=1)


def value(pairs, z, mask, softmax, n):
    for p, q in pairs:
        scores = z.T @ q @ z
        if softmax:
            scores = torch.softmax(scores, dim=1)
        z = z + p @ z @ mask @ scores / n
    return -z[-1, -1]


def seconds_per_task(setting):
    s = {**STANDARD, **setting}
    d, n, layers = s["d"], s["n"], s["layers"]
    k = 2 * d + 1
    std = 0.1 / (1 if s["tied"] else layers) / k ** 0.5
    own = [[torch.nn.Parameter(std * torch.randn(k, k)) for _ in range(2)] for _ in range(1 if s["tied"] else layers)]
    pairs = own * layers if s["tied"] else own
    alpha = torch.nn.Parameter(torch.ones(1))
    corner, block = torch.zeros(k, k), torch.zeros(k, k)
    corner[-1, -1] = 1
    block[:d, :d], block[:d, d:2 * d] = -torch.eye(d), torch.eye(d)
    mask = torch.eye(n + 1)
    mask[n, n] = 0
    optimizer = torch.optim.Adam([x for pair in own for x in pair], lr=1e-3, weight_decay=1e-6)
    comparator = torch.optim.Adam([alpha], lr=1e-3, weight_decay=1e-6)

    def train(tasks):
        for _ in range(tasks):
            chain = Chain(d, s["m"], s["representable"])
            for _ in range(BATCHES):
                states = chain.walk(n + 2 + BATCH)
                losses = [0.0, 0.0]
                values = None
                for t in range(BATCH + 1):
                    z = prompt(chain, states[t:t + n + 2], n, d)
                    new = [value(pairs, z, mask, s["softmax"], n), value([(corner, alpha * block)] * layers, z, mask, False, n)]
                    if values is not None:
                        reward = chain.rewards[states[t + n]]
                        for i in range(2):
                            losses[i] = losses[i] + (reward + GAMMA * new[i].detach() - values[i]) ** 2
                    values = new
                for loss, adam in zip(losses, (optimizer, comparator)):
                    adam.zero_grad()
                    (loss / BATCH).backward()
                    adam.step()

    train(1)
    start = time.perf_counter()
    train(TASKS)
    return (time.perf_counter() - start) / TASKS


# Two seeds run beside each other on two cores, so each has one.
torch.set_num_threads(1)
torch.manual_seed(0)
total = 0.0
print(f"| PyTorch {torch.__version__}, prompt by prompt | seconds per task | hours for all |\n|---|---:|---:|")
for name, setting in EXPERIMENTS.items():
    seconds = seconds_per_task(setting)
    whole = seconds * SEEDS * ALL_TASKS / CORES
    total += whole
    print(f"| {name} | {seconds:.3f} | {whole / 3600:.1f} |", flush=True)
print(f"| all nine | | {total / 3600:.1f} |")
print(json.dumps({"seconds": total}))
