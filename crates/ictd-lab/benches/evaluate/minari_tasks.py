"""Two tasks of Gymnasium, recorded with Minari, against long Monte-Carlo rollouts and a fitted evaluation of trees.

A fixed stochastic policy acts. The values wanted are those of acting so for ever: where Gymnasium's time limit stops an episode the
value is not 0. They are asked at states of other episodes of the same policy, and the truth there comes from rollouts of the task itself,
set to that state and run without a time limit.
"""

import csv
import json
import math
import multiprocessing
import os
import random
import shutil
import time

import gymnasium
import minari
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from common import WORK, Evaluation, mean_and_error, say

GAMMA, EPISODES = 0.99, 100
# Rules were changed after a look at the first; the others are fresh.
RECORDINGS = 6
QUERIES, ROLLOUTS, HORIZON = 120, 400, 1000


def balance(observation, draw):
    """Pushes to the side the pole falls to, more often the faster it falls."""
    place, speed, angle, turn = map(float, observation)
    return int(draw.random() < 1 / (1 + math.exp(-1.5 * (6 * angle + turn + 0.3 * speed + 0.1 * place))))


def swing(observation, draw):
    """Half of the time pushes where the car is going, else at random."""
    return (2 if observation[1] > 0 else 0) if draw.random() < 0.5 else draw.randrange(3)


TASKS = {"CartPole-v1": balance, "MountainCar-v0": swing}


def play(env, task, part):
    """Plays the episodes of a part of the seeds: 0 for the first recording, 1 for the states asked, others for more recordings. Yields the states that were left and whether the end was terminal."""
    draw = random.Random(part)
    for episode in range(EPISODES):
        # Without a seed Minari draws one from the system.
        observation, _ = env.reset(seed=part * EPISODES + episode)
        left, over = [], False
        while not over:
            left.append(observation)
            observation, _, terminated, truncated, _ = env.step(TASKS[task](observation, draw))
            over = terminated or truncated
        yield left, terminated


def record(task, number, folder):
    """Records episodes with Minari; what Gymnasium said of them is counted beside it."""
    os.environ["MINARI_DATASETS_PATH"] = str(folder.resolve())
    env = minari.DataCollector(gymnasium.make(task))
    ends, steps = {"terminated": 0, "truncated": 0}, []
    for left, terminated in play(env, task, number + 1 if number else 0):
        ends["terminated" if terminated else "truncated"] += 1
        steps.append(len(left))
    name = f"{task.split('-')[0].lower()}/mediocre-v{number}"
    env.create_dataset(dataset_id=name, algorithm_name="a fixed stochastic policy", author="ictd", author_email="none", code_permalink="none")
    env.close()
    return folder / name, ends, steps


def queries(task):
    """States of other episodes, evenly over all their steps."""
    states = [state for left, _ in play(gymnasium.make(task), task, 1) for state in left]
    return [states[k] for k in np.linspace(0, len(states) - 1, QUERIES).astype(int)]


def rollouts(work):
    """Mean return from a state and its standard error. What follows the horizon counts less than 5e-5 of a value."""
    task, number, state = work
    env, draw, returns = gymnasium.make(task).unwrapped, random.Random(1000 + number), []
    for _ in range(ROLLOUTS):
        env.reset()
        env.state = np.array(state, dtype=np.float64)
        observation, total, discount = state, 0.0, 1.0
        for _ in range(HORIZON):
            observation, reward, terminated, _, _ = env.step(TASKS[task](observation, draw))
            total, discount = total + discount * reward, discount * GAMMA
            if terminated:
                break
        returns.append(total)
    return mean_and_error(returns)


class FittedEvaluation:
    """Fitted evaluation with extremely randomised trees (Ernst, Geurts and Wehenkel 2005): trees are grown on returns, then
    V(s) ← the mean of r + γ V(s') in the leaves of s until it stands still, and once more with trees grown on that V."""

    def __init__(self, leaf):
        self.leaf = leaf

    def fit(self, states, rewards, following, alive):
        """`following`: the state after each transition; `alive`: whether it has a value."""
        constant = rewards.sum() / (1 - GAMMA * alive).sum()
        target = rewards + GAMMA * alive * constant
        # Returns, completed with a constant where recording stopped.
        for row in range(len(rewards) - 2, -1, -1):
            if alive[row] and np.array_equal(following[row], states[row + 1]):
                target[row] = rewards[row] + GAMMA * target[row + 1]
        value = np.full(len(rewards), constant)
        for _ in range(2):
            self.forest = ExtraTreesRegressor(50, min_samples_leaf=self.leaf, random_state=0, n_jobs=-1).fit(states, target)
            trees = [tree.tree_ for tree in self.forest.estimators_]
            here, there = self.forest.apply(states), self.forest.apply(following)
            counts = [np.bincount(here[:, k], minlength=tree.node_count) for k, tree in enumerate(trees)]
            for _ in range(2000):
                target = rewards + GAMMA * alive * value
                sums = [np.bincount(here[:, k], target, tree.node_count) for k, tree in enumerate(trees)]
                self.leaves = [total / np.maximum(count, 1) for total, count in zip(sums, counts)]
                new = self.values_at(there)
                moved, value = np.abs(new - value).max(), new
                if moved < 1e-4:
                    break
        return self

    def values_at(self, leaves):
        return np.mean([means[leaves[:, k]] for k, means in enumerate(self.leaves)], axis=0)

    def predict(self, states):
        return self.values_at(self.forest.apply(states))


def fitted(folder):
    """The peer's values: the size of leaves is the best of three on every fifth episode, by returns as far as they were seen."""
    parts = []
    for episode in minari.load_dataset(str(folder.relative_to(folder.parent.parent))):
        alive = np.ones(len(episode.rewards))
        alive[-1] = not episode.terminations[-1]
        parts.append((episode.observations[:-1].astype(float), episode.rewards, episode.observations[1:].astype(float), alive))
    join = lambda chosen: [np.concatenate(columns) for columns in zip(*chosen)]
    training = join([part for k, part in enumerate(parts) if k % 5])
    losses = {}
    for leaf in (2, 5, 20):
        fit, squares = FittedEvaluation(leaf).fit(*training), 0.0
        for states, rewards, following, alive in parts[::5]:
            total = alive[-1] * fit.predict(following[-1:])[0]
            values = fit.predict(states)
            for row in range(len(rewards) - 1, -1, -1):
                total = rewards[row] + GAMMA * total
                squares += (values[row] - total) ** 2
        losses[leaf] = squares
    leaf = min(losses, key=losses.get)
    return FittedEvaluation(leaf).fit(*join(parts)), leaf


class Trial:
    """Values of one recording at the states asked, ours and the peer's, against the truth there."""

    def __init__(self, task, number, asked, truth):
        say(f"minari: {task}, recording {number + 1} of {RECORDINGS}")
        folder, self.ends, self.steps = record(task, number, WORK / "minari")
        query = WORK / "minari" / f"{task}.csv"
        with open(query, "w", newline="") as file:
            csv.writer(file).writerows([state_names(folder), *([repr(float(x)) for x in state] for state in asked)])
        self.run = Evaluation(folder, GAMMA, "--query", query)
        start = time.perf_counter()
        peer, self.leaf = fitted(folder)
        self.peer_seconds = time.perf_counter() - start
        self.value, low, high = (np.array(self.run.column(name)) for name in ("value", "low", "high"))
        rmse = lambda values: math.sqrt(np.mean((values - truth) ** 2))
        self.ours, self.peer = rmse(self.value), rmse(peer.predict(np.array(asked, dtype=float)))
        self.hold, self.width = ((low <= truth) & (truth <= high)).mean(), (high - low).mean()

    def check(self, task, criteria):
        counts = self.run.answer["counts"]
        found = {end: counts[end] for end in self.ends}
        criteria.check(counts["episodes"] == EPISODES and counts["transitions"] == sum(self.steps), f"{task}: {EPISODES} episodes, {sum(self.steps):,} steps, all read")
        ends = f"{self.ends['terminated']} terminated and {self.ends['truncated']} truncated episodes"
        criteria.check(found == self.ends and all(self.ends.values()), f"{task}: {ends} are kept apart as recorded")
        criteria.check(np.isfinite(self.value).all() and len(self.value) == QUERIES, f"{task}: {QUERIES} finite values")
        criteria.check(self.run.judgement in ("trust", "caution", "refuse") and self.run.reasons, f"{task}: judgement {self.run.judgement} with {len(self.run.reasons)} reasons")


def study(criteria):
    shutil.rmtree(WORK / "minari", ignore_errors=True)
    (WORK / "minari").mkdir(parents=True)
    print(f"\n## Gymnasium tasks recorded with Minari {minari.__version__}, discount {GAMMA}\n")
    print(f"{RECORDINGS} recordings of {EPISODES} episodes each; values at {QUERIES} states of other episodes; the truth is the mean of {ROLLOUTS} rollouts.\n")
    print("| task | terminated, truncated | | RMSE | 95 % intervals hold | mean width | seconds |")
    print("|---|---|---|---:|---:|---:|---:|")
    trials = {}
    for task in TASKS:
        asked = queries(task)
        say(f"minari: rollouts of {task}")
        with multiprocessing.Pool() as pool:
            truth, error = map(np.array, zip(*pool.map(rollouts, [(task, k, state) for k, state in enumerate(asked)], chunksize=5)))
        first, *fresh = trials[task] = [Trial(task, number, asked, truth) for number in range(RECORDINGS)]
        for name, some in (("the first", [first]), (f"{len(fresh)} fresh ones", fresh)):
            # A single recording has no scatter over recordings.
            over = lambda of, form: " ± ".join(format(x, form) for x in (mean_and_error([of(t) for t in some]) if len(some) > 1 else [of(some[0])]))
            ends = ", ".join(f"{sum(t.ends[end] for t in some)}" for end in ("terminated", "truncated"))
            ours = f"{over(lambda t: t.ours, '.2f')} | {over(lambda t: t.hold, '.1%')} | {over(lambda t: t.width, '.1f')} | {over(lambda t: t.run.seconds, '.1f')}"
            print(f"| {task}, {name} | {ends} | `ictd evaluate` | {ours} |")
            print(f"| | | fitted evaluation, 50 trees | {over(lambda t: t.peer, '.2f')} | none | | {over(lambda t: t.peer_seconds, '.1f')} |")
        print(f"| | | one number for all, the mean of the truth | {truth.std():.2f} | | | |")
        print(f"| | | standard error of the truth | {math.sqrt(np.mean(error ** 2)):.2f} | | | |", flush=True)
    print()
    for task, some in trials.items():
        gains = [t.peer - t.ours for t in some[1:]]
        mean, error = mean_and_error(gains)
        levels = [t.run.judgement for t in some]
        print(f"{task}: the error is {'smaller' if mean > 0 else 'larger'} than that of the fitted evaluation by {abs(mean):.2f} ± {error:.2f} on fresh recordings; judgements: {', '.join(levels)}.\n")
        for reason in some[0].run.reasons:
            print(f"> {reason}")
        print()
        for trial in some:
            trial.check(task, criteria)


def state_names(folder):
    """The names that the program gives the columns of a data set without names."""
    dim = json.loads(json.loads((folder / "data" / "metadata.json").read_text())["observation_space"])["shape"][0]
    return [f"observations_{k}" for k in range(dim)]
