"""Logs made by the libraries whose formats are read: gymnasium 1.4.0, minari 0.5.4, h5py 3.16.0, numpy 2.4.6, pillow (Minari needs it).

python make.py DIR writes cartpole (Minari, episodes of both ends), chain (Minari, discrete observations, seeds and infos),
legacy.hdf5 (Minari 0.4: attributes on the root instead of metadata.json), d4rl.hdf5, d3rlpy.h5 and flat.npz.
"""

import json
import os
import shutil
import sys

out = os.path.abspath(sys.argv[1])
os.environ["MINARI_DATASETS_PATH"] = os.path.join(out, "minari")

import gymnasium as gym
import h5py
import minari
import numpy as np


class Chain(gym.Env):
    """Five states in a row; the walk ends at the right end."""

    observation_space = gym.spaces.Discrete(5)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 0
        return self.state, {}

    def step(self, action):
        self.state = max(0, min(4, self.state + (1 if self.np_random.random() < 0.6 else -1)))
        return self.state, -1.0, self.state == 4, False, {}


def record(name, env, episodes, **options):
    env = minari.DataCollector(env, **options)
    env.action_space.seed(0)
    for episode in range(episodes):
        env.reset(seed=episode)
        while True:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                break
    env.create_dataset(name, algorithm_name="random", author="nobody", author_email="no@body")
    env.close()
    return os.path.join(os.environ["MINARI_DATASETS_PATH"], name, "data")


cartpole = record("ictd/cartpole-v0", gym.make("CartPole-v1", max_episode_steps=15), 10)
chain = record("ictd/chain-v0", gym.wrappers.TimeLimit(Chain(), 12), 9, record_infos=True)

# What Minari 0.4 wrote: the same groups, and what is now in metadata.json as attributes of the root.
legacy = os.path.join(out, "legacy.hdf5")
shutil.copy(os.path.join(chain, "main_data.hdf5"), legacy)
with open(os.path.join(chain, "metadata.json")) as file:
    metadata = json.load(file)
with h5py.File(legacy, "a") as file:
    for key, value in metadata.items():
        file.attrs[key] = value

episodes = [e for e in minari.load_dataset("ictd/cartpole-v0").iterate_episodes()]
states = np.concatenate([e.observations[:-1] for e in episodes])
after = np.concatenate([e.observations[1:] for e in episodes])
rewards = np.concatenate([e.rewards for e in episodes])
terminals = np.concatenate([e.terminations for e in episodes])
timeouts = np.concatenate([e.truncations for e in episodes])
with h5py.File(os.path.join(out, "d4rl.hdf5"), "w") as file:
    for name, array in [
        ("observations", states),
        ("next_observations", after),
        ("actions", np.zeros((len(states), 1), "f4")),
        ("rewards", rewards.astype("f4")),
        ("terminals", terminals),
        ("timeouts", timeouts),
    ]:
        file.create_dataset(name, data=array, compression="gzip")

# As d3rlpy.dataset.io.dump of version 2 writes episodes.
with h5py.File(os.path.join(out, "d3rlpy.h5"), "w") as file:
    file.create_dataset("columns", data=["observations", "actions", "rewards", "terminated"])
    file.create_dataset("num_episodes", data=len(episodes))
    file.create_dataset("version", data="2.1")
    for k, e in enumerate(episodes):
        file.create_dataset(f"observations_{k}", data=e.observations[:-1])
        file.create_dataset(f"actions_{k}", data=e.actions.reshape(-1, 1))
        file.create_dataset(f"rewards_{k}", data=e.rewards.reshape(-1, 1).astype("f4"))
        file.create_dataset(f"terminated_{k}", data=bool(e.terminations[-1]))

names = np.concatenate([np.full(len(e.rewards), e.id) for e in episodes])
np.savez_compressed(
    os.path.join(out, "flat.npz"),
    episode=names,
    observations=states,
    next_observations=after,
    rewards=rewards,
    terminals=terminals,
    timeouts=timeouts,
)
# What the readers should find, from the libraries themselves.
print(json.dumps({
    "steps": int(sum(len(e.rewards) for e in episodes)),
    "terminated": int(terminals.sum()),
    "reward": float(rewards.sum()),
    "first": [float(x) for x in episodes[0].observations[0]],
}))
