"""Contexts as NumPy 2.4.6 writes them; python make.py DIR.

one.npz is a trajectory in single precision, episodes.npz are two episodes with queries in Fortran order and arrays that are passed
over, packed.npz is the same compressed. one.json and episodes.json have the same numbers.
"""

import json
import os
import sys

import numpy as np

out = sys.argv[1]


def write(name, arrays, context):
    np.savez(os.path.join(out, name + ".npz"), **arrays)
    with open(os.path.join(out, name + ".json"), "w") as file:
        json.dump(context, file)
        file.write("\n")


rng = np.random.default_rng(0)
features = rng.uniform(-1, 1, (6, 3)).astype(np.float32)
rewards = rng.standard_normal(5).astype(np.float32)
one = {"features": features.tolist(), "rewards": rewards.tolist(), "terminated": True}
write("one", {"features": features, "rewards": rewards, "terminated": True}, one)

features = rng.uniform(-1, 1, (8, 2))
rewards = rng.integers(-3, 3, 6)
queries = np.asfortranarray(rng.uniform(-1, 1, (3, 2)))
arrays = {
    "features": features,
    "rewards": rewards,
    "lengths": np.array([2, 4]),
    "terminated": np.array([True, False]),
    "queries": queries,
    "states": np.arange(8),
    "values": rng.standard_normal(8),
}
episodes = [
    {"features": features[:3].tolist(), "rewards": rewards[:2].tolist(), "terminated": True},
    {"features": features[3:].tolist(), "rewards": rewards[2:].tolist()},
]
several = {"episodes": episodes, "queries": queries.tolist()}
write("episodes", arrays, several)
np.savez_compressed(os.path.join(out, "packed.npz"), **arrays)
