"""Episodes of environments: `ictd.gym` and `ictd.recording`."""

from __future__ import annotations

import copy
import csv
import importlib.util
import json
import os
import pickle
import shutil
import subprocess

import numpy as np
import pytest

import ictd
import ictd.gym
import ictd.recording
from ictd.errors import InputError, InputTypeError


try:
    import gymnasium
except ImportError:
    gymnasium = None
needs_gymnasium = pytest.mark.skipif(gymnasium is None, reason="Gymnasium is not installed")


class Counter:
    """Counts down from 3 and terminates at 0; says what it was asked."""

    def __init__(self, start=3, observe=lambda left: left, reward=lambda left: float(left)):
        self.start, self.observe, self.reward, self.calls = start, observe, reward, []

    def reset(self, *, seed=None):
        self.calls.append(seed)
        self.left = self.start
        return self.observe(self.left), {}

    def step(self, action):
        self.left -= 1
        return self.observe(self.left), self.reward(self.left), self.left == 0, False, {}


class Space:
    """As much of an action space as is used."""

    def __init__(self, count):
        self.count, self.rng, self.shape, self.dtype = count, np.random.default_rng(), (), np.dtype(np.int64)

    def seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def sample(self):
        return self.rng.integers(self.count)

    def contains(self, action):
        return isinstance(action, (int, np.integer)) and 0 <= action < self.count

    def __repr__(self):
        return f"Space({self.count})"


class Walk:
    """A random walk that an action pushes: everything in it is drawn."""

    def __init__(self):
        self.action_space, self.rng = Space(3), np.random.default_rng()

    def reset(self, *, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.place, self.steps = self.rng.normal(size=2), 0
        return self.place.copy(), {}

    def step(self, action):
        self.place = self.place + 0.1 * action + self.rng.normal(size=2)
        self.steps += 1
        return self.place.copy(), float(self.place @ self.place), bool(self.rng.random() < 0.1), self.steps == 30, {}


# --- what is recorded


def test_an_episode_has_one_observation_more_than_steps():
    env = Counter()
    episodes = ictd.collect(env, lambda state: state * 10, episodes=2, seed=5)
    assert len(episodes) == 2 and env.calls == [5, None]
    for number, episode in enumerate(episodes):
        assert episode.id == number and len(episode) == 3
        np.testing.assert_array_equal(episode.observations, [3, 2, 1, 0])
        np.testing.assert_array_equal(episode.actions, [30, 20, 10])
        np.testing.assert_array_equal(episode.rewards, [2.0, 1.0, 0.0])
        np.testing.assert_array_equal(episode.terminations, [False, False, True])
        np.testing.assert_array_equal(episode.truncations, [False, False, False])
        assert episode.terminated is True and episode.truncated is False
        assert episode.observations.dtype == np.int64 and episode.rewards.dtype == np.float64 and episode.terminations.dtype == bool
    assert "3 steps" in repr(episodes[0]) and "2 episodes, 6 steps, 0 cut short" in repr(episodes)


def test_max_steps_truncates_and_never_marks_a_terminated_episode():
    cut = ictd.collect(Counter(), lambda state: 0, episodes=1, seed=0, max_steps=2)[0]
    assert len(cut) == 2 and cut.truncated and not cut.terminated
    np.testing.assert_array_equal(cut.truncations, [False, True])
    whole = ictd.collect(Counter(), lambda state: 0, episodes=1, seed=0, max_steps=3)[0]
    assert whole.terminated and not whole.truncated


def test_both_flags_of_one_step_are_kept():
    env = Counter(start=1)
    env.step = lambda action: (0, 1.0, np.bool_(True), 1, {})
    episode = ictd.collect(env, lambda state: 0, episodes=1, seed=0)[0]
    assert episode.terminated and episode.truncated


def test_arrays_that_environment_and_policy_reuse_are_copied():
    class Reused(Counter):
        seen = np.zeros(2)

        def reset(self, *, seed=None):
            super().reset(seed=seed)
            self.seen[:] = self.left
            return self.seen, {}

        def step(self, action):
            _, reward, *rest = super().step(action)
            self.seen[:] = self.left
            action[:] = -1
            return self.seen, reward, *rest

    given = np.zeros(1)

    def policy(observation):
        given[:] = observation[0]
        return given

    episode = ictd.collect(Reused(), policy, episodes=1, seed=0)[0]
    np.testing.assert_array_equal(episode.observations, [[3, 3], [2, 2], [1, 1], [0, 0]])
    np.testing.assert_array_equal(episode.actions, [[3], [2], [1]])


@pytest.mark.parametrize(
    ("observe", "columns", "first", "X"),
    [
        (lambda k: k, ["state"], 3, (4,)),
        (lambda k: np.int32(k), ["state"], 3, (4,)),
        (lambda k: k > 1, ["state"], 1, (4,)),
        (lambda k: "abcd"[k], ["state"], "d", (4,)),
        (lambda k: k / 2, ["state"], 1.5, (4, 1)),
        (lambda k: np.array([k / 2]), ["obs_0"], [1.5], (4, 1)),
        (lambda k: [k, k + 0.5], ["obs_0", "obs_1"], [3, 3.5], (4, 2)),
        (lambda k: np.full((2, 2), k, dtype=np.uint8), ["obs_0", "obs_1", "obs_2", "obs_3"], [[3, 3], [3, 3]], (4, 4)),
        (lambda k: (k, 10, False), ["obs_0", "obs_1", "obs_2"], [3, 10, 0], (4, 3)),
        (lambda k: {"speed": np.array([k / 2, 1]), "at": k}, ["obs_at", "obs_speed_0", "obs_speed_1"], [3, 1.5, 1], (4, 3)),
        (lambda k: {"b": ({"z": 1.5}, k), "a": [k]}, ["obs_a_0", "obs_b_0_z", "obs_b_1"], [3, 1.5, 3], (4, 3)),
    ],
)
def test_observations_of_every_kind_become_arrays(observe, columns, first, X, tmp_path):
    episodes = ictd.collect(Counter(observe=observe), lambda state: 0, episodes=2, seed=0)
    assert list(episodes.state_columns) == columns
    np.testing.assert_array_equal(episodes[0].observations[0], np.array(first))
    assert episodes[:1].arrays().X.shape == X
    for ending in ("csv", "npz", "jsonl"):
        episodes.save(tmp_path / f"log.{ending}")


def test_whole_numbers_then_fractions_are_numbers():
    episode = ictd.collect(Counter(observe=lambda k: [k] if k % 2 else [k + 0.5]), lambda state: 0, episodes=1, seed=0)[0]
    np.testing.assert_array_equal(episode.observations, [[3], [2.5], [1], [0.5]])


def test_actions_of_every_kind_become_arrays():
    for policy, columns, first in [
        (lambda state: 1, ("action",), 1),
        (lambda state: np.float32(0.5), ("action",), 0.5),
        (lambda state: np.array([1, 2]), ("action_0", "action_1"), [1, 2]),
        (lambda state: (1, 0.5), ("action_0", "action_1"), [1, 0.5]),
        (lambda state: {"b": 2, "a": [1.5]}, ("action_a_0", "action_b"), [1.5, 2]),
    ]:
        episodes = ictd.collect(Counter(), policy, episodes=1, seed=0)
        assert episodes.action_columns == columns
        np.testing.assert_array_equal(episodes[0].actions[0], first)


# --- seeds


def as_bytes(episodes, folder):
    found = []
    for ending in ("csv", "npz", "jsonl"):
        episodes.save(folder / f"log.{ending}")
        found.append((folder / f"log.{ending}").read_bytes())
    return found


@pytest.mark.parametrize("policy", [None, lambda place: int(place[0] > 0), lambda place, rng: rng.integers(3)])
def test_the_same_seed_gives_the_same_bytes(policy, tmp_path):
    env = Walk()
    first = as_bytes(ictd.collect(env, policy, episodes=4, seed=7), tmp_path)
    assert as_bytes(ictd.collect(env, policy, episodes=4, seed=7), tmp_path) == first
    assert as_bytes(ictd.collect(Walk(), policy, episodes=4, seed=np.int32(7)), tmp_path) == first
    assert all(a != b for a, b in zip(as_bytes(ictd.collect(env, policy, episodes=4, seed=8), tmp_path), first, strict=True))


def test_more_episodes_begin_with_the_same_ones():
    few, many = (ictd.collect(Walk(), None, episodes=n, seed=3) for n in (2, 5))
    for a, b in zip(few, many, strict=False):
        np.testing.assert_array_equal(a.observations, b.observations)


def test_a_policy_that_samples_the_action_space_is_seeded_too():
    env = Walk()
    a, b = (ictd.collect(env, lambda place: env.action_space.sample(), episodes=2, seed=1) for _ in range(2))
    np.testing.assert_array_equal(a[1].actions, b[1].actions)


def test_random_actions_do_not_follow_the_stream_of_the_environment():
    class Echo(Counter):
        """Draws what the action space draws, if both were given the same seed."""

        action_space = Space(1000)

        def reset(self, *, seed=None):
            self.rng, self.left = np.random.default_rng(seed), 200
            return 0, {}

        def step(self, action):
            self.left -= 1
            return int(self.rng.integers(1000)), 0.0, self.left == 0, False, {}

    drawn = ictd.collect(Echo(), None, episodes=1, seed=11)[0]
    chosen = ictd.collect(Echo(), lambda state, rng: rng.integers(1000), episodes=1, seed=11)[0]
    # Of 200 pairs out of 1000 more than 5 agree by chance with probability 1e-8.
    assert (drawn.observations[1:] == drawn.actions).sum() <= 5
    assert (chosen.observations[1:] == chosen.actions).sum() <= 5
    assert (drawn.actions == chosen.actions).sum() <= 5


# --- policies


def test_policies_get_the_generator_where_they_want_it():
    class Model:
        def __call__(self, *args, **kwargs):
            assert len(args) == 1 and not kwargs
            return 4

        def predict(self, observation, state=None, deterministic=True):
            assert state is None and deterministic is True
            return 5

    def by_keyword(observation, *, rng):
        return int(isinstance(rng, np.random.Generator))

    def by_default(observation, rng=None):
        return int(isinstance(rng, np.random.Generator))

    def second(observation, generator):
        return int(isinstance(generator, np.random.Generator))

    for policy, action in [(by_keyword, 1), (by_default, 1), (second, 1), (Model(), 4), (Model().predict, 5), (abs, 3), (int, 3), ([1, 2, 3, 4].__getitem__, 4)]:
        assert ictd.collect(Counter(), policy, episodes=1, seed=0)[0].actions[0] == action


def test_actions_are_given_as_the_space_has_them():
    class Strict(Walk):
        def step(self, action):
            assert {0: 1, 1: 1, 2: 1}[action] and type(action) is not np.ndarray
            return super().step(action)

    for action in (1, np.int32(1), np.array(1), 1.0, np.float32(1), True):
        assert ictd.collect(Strict(), lambda place, action=action: action, episodes=1, seed=0)[0].actions[0] == 1


@needs_gymnasium
def test_a_box_takes_lists_and_doubles_and_leaves_its_bounds_to_the_environment():
    class Box(Walk):
        def __init__(self):
            super().__init__()
            self.action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

        def step(self, action):
            assert action.dtype == np.float32 and action.shape == (2,)
            return super().step(action)

    for action in ([0.5, 0], np.array([0.5, 0.0]), np.array([7.0, 0.0])):
        np.testing.assert_array_equal(ictd.collect(Box(), lambda place, a=action: a, episodes=1, seed=0)[0].actions[0], action)
    for action in ([0.5], [[0.5, 0]], [np.nan, 0], "left", None, {}):
        with pytest.raises(InputError, match="at step 0 of episode 0, expected an action of Box"):
            ictd.collect(Box(), lambda place, a=action: a, episodes=1, seed=0)


# --- what is refused


def ending(reply):
    env = Counter()
    env.step = lambda action: reply
    return env


def starting(reply):
    env = Counter()
    env.reset = lambda **seed: reply
    return env


class NoSpace(Counter):
    pass


def vector():
    env = Counter()
    env.single_action_space = Space(2)
    return env


def first_then(first, then):
    replies = iter([first, then, then])
    return lambda left: next(replies)


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (InputError, "episodes is 0, expected a whole number, 1 or more", lambda: ictd.collect(Counter(), abs, 0, 0)),
        (InputTypeError, "episodes is of type float, expected a whole number", lambda: ictd.collect(Counter(), abs, 2.5, 0)),
        (InputError, "seed is -1, expected a whole number, 0 or more", lambda: ictd.collect(Counter(), abs, 1, -1)),
        (InputTypeError, "seed is of type NoneType, expected a whole number", lambda: ictd.collect(Counter(), abs, 1, None)),
        (InputError, "max_steps is 0, expected a whole number, 1 or more", lambda: ictd.collect(Counter(), abs, 1, 0, max_steps=0)),
        (InputTypeError, "env is 7, expected a Gymnasium environment", lambda: ictd.collect(7, abs, 1, 0)),
        (InputTypeError, "env is None, expected a Gymnasium environment", lambda: ictd.collect(None, abs, 1, 0)),
        (InputTypeError, "env is the class Counter, expected an environment: call it first", lambda: ictd.collect(Counter, abs, 1, 0)),
        (InputTypeError, "several environments in one", lambda: ictd.collect(vector(), abs, 1, 0)),
        (InputTypeError, "without an action_space to draw actions from", lambda: ictd.collect(NoSpace(), None, 1, 0)),
        (InputTypeError, "policy is 3, expected a function of an observation", lambda: ictd.collect(Counter(), 3, 1, 0)),
        (InputTypeError, r"policy takes \(\), expected a function", lambda: ictd.collect(Counter(), lambda: 0, 1, 0)),
        (InputTypeError, r"policy takes \(a, b, c\), expected", lambda: ictd.collect(Counter(), lambda a, b, c: 0, 1, 0)),
        (InputError, r"policy returned 3 at step 0 of episode 0, expected an action of Space\(3\)", lambda: ictd.collect(Walk(), lambda p: 3, 1, 0)),
        (InputError, "policy returned 1.5 at step 0", lambda: ictd.collect(Walk(), lambda p: 1.5, 1, 0)),
        (InputError, r"policy returned \[1\] at step 0", lambda: ictd.collect(Walk(), lambda p: [1], 1, 0)),
        (InputError, "policy returned None at step 0", lambda: ictd.collect(Walk(), lambda p: None, 1, 0)),
        (InputError, "policy returned nan at step 0", lambda: ictd.collect(Walk(), lambda p: np.nan, 1, 0)),
        (InputTypeError, "action None at step 0 of episode 0 is a NoneType, expected numbers", lambda: ictd.collect(Counter(), lambda p: None, 1, 0)),
        (InputTypeError, "action at step 0 of episode 0 is 'left', expected numbers", lambda: ictd.collect(Counter(), lambda p: "left", 1, 0)),
        (InputError, "reward at step 0 of episode 0 is nan, expected a finite number", lambda: ictd.collect(ending((0, np.nan, False, False, {})), abs, 1, 0)),
        (InputError, "reward at step 0 of episode 0 is inf", lambda: ictd.collect(ending((0, np.inf, False, False, {})), abs, 1, 0)),
        (InputError, "reward at step 0 of episode 0 is None", lambda: ictd.collect(ending((0, None, False, False, {})), abs, 1, 0)),
        (InputTypeError, "reward at step 0 of episode 0 is 'much', expected a number", lambda: ictd.collect(ending((0, "much", False, False, {})), abs, 1, 0)),
        (InputTypeError, r"reward at step 0 of episode 0 is \[1, 2\], expected one number", lambda: ictd.collect(ending((0, [1, 2], False, False, {})), abs, 1, 0)),
        (InputTypeError, "env.step returned .*, expected observation, reward, terminated, truncated", lambda: ictd.collect(ending((0, 1.0, False, {})), abs, 1, 0)),
        (InputTypeError, "terminated at step 0 of episode 0 is None, expected True or False", lambda: ictd.collect(ending((0, 1.0, None, False, {})), abs, 1, 0)),
        (InputTypeError, "truncated at step 0 of episode 0 is 2, expected True or False", lambda: ictd.collect(ending((0, 1.0, False, 2, {})), abs, 1, 0)),
        (InputTypeError, "env.reset returned 3, expected an observation and a dictionary", lambda: ictd.collect(starting(3), abs, 1, 0)),
        (InputError, r"observation at step 0 of episode 0 is \[nan\], expected finite numbers", lambda: ictd.collect(starting(([np.nan], {})), abs, 1, 0)),
        (InputTypeError, "observation None at step 0 of episode 0 is a NoneType, expected numbers", lambda: ictd.collect(starting((None, {})), abs, 1, 0)),
        (InputTypeError, "is no array", lambda: ictd.collect(starting(([[1], [2, 3]], {})), abs, 1, 0)),
        (InputTypeError, "has texts in its parts", lambda: ictd.collect(starting(({"a": "x", "b": 1}, {})), abs, 1, 0)),
        (InputError, "has no parts", lambda: ictd.collect(starting(({}, {})), abs, 1, 0)),
        (InputError, "columns of one name: obs_a_0", lambda: ictd.collect(starting(({"a": [1], "a_0": 2}, {})), abs, 1, 0)),
        (
            InputError,
            r"observation at step 1 of episode 0 is \[1, 2\], expected the columns obs_0 and the shape \(1,\) of the first",
            lambda: ictd.collect(Counter(observe=first_then([1], [1, 2])), lambda p: 0, 1, 0),
        ),
        (
            InputError,
            "observation at step 1 of episode 0 is {'b': 1}, expected the columns obs_a",
            lambda: ictd.collect(Counter(observe=first_then({"a": 1}, {"b": 1})), lambda p: 0, 1, 0),
        ),
        (
            InputError,
            "observation at step 1 of episode 0 is 'x', expected the columns state",
            lambda: ictd.collect(Counter(observe=first_then(1, "x")), lambda p: 0, 1, 0),
        ),
        (InputError, "'log.txt', expected a name that ends in .csv, .npz or .jsonl", lambda: ictd.collect(Counter(), abs, 1, 0).save("log.txt")),
        (InputError, "there are 0 episodes", lambda: ictd.collect(Counter(), abs, 1, 0)[:0].arrays()),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(error, text, call):
    with pytest.raises(error, match=text):
        call()
    assert issubclass(InputError, ValueError) and issubclass(InputTypeError, TypeError)


def test_an_id_without_gymnasium_is_refused(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="env is the id 'CartPole-v1' and Gymnasium is not installed"):
        ictd.collect("CartPole-v1", None, 1, 0)


def test_what_environment_and_policy_raise_passes_through():
    raised = KeyError("mine")

    def fail(*_):
        raise raised

    env = Counter()
    with pytest.raises(KeyError) as found:
        ictd.collect(env, fail, 1, 0)
    assert found.value is raised
    env.step = fail
    with pytest.raises(KeyError) as found:
        ictd.collect(env, abs, 1, 0)
    assert found.value is raised


@needs_gymnasium
def test_an_environment_that_was_made_here_is_closed_and_no_other():
    closed = []

    class Closing(gymnasium.Env):
        observation_space, action_space = gymnasium.spaces.Discrete(4), gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.left = 3
            return self.left, {}

        def step(self, action):
            self.left -= 1
            return self.left, 1.0, self.left == 0, False, {}

        def close(self):
            closed.append(self)

    gymnasium.register("Closing-v0", Closing)
    try:
        assert len(ictd.collect("Closing-v0", None, 2, 0)) == 2 and len(closed) == 1

        def fail(state):
            raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="^mine$"):
            ictd.collect("Closing-v0", fail, 1, 0)
        assert len(closed) == 2
        with pytest.raises(gymnasium.error.Error):
            ictd.collect("NoSuchThing-v0", None, 1, 0)
        own = gymnasium.make("Closing-v0")
        ictd.collect(own, None, 1, 0)
        assert len(closed) == 2
        ictd.collect(own, None, 1, 0)
    finally:
        del gymnasium.registry["Closing-v0"]


# --- tables and files


def test_arrays_are_a_table_with_a_last_row_per_episode():
    episodes = ictd.collect(Walk(), None, episodes=5, seed=2)
    X, rewards, episode, terminated, truncated = episodes.arrays()
    steps = sum(map(len, episodes))
    assert X.shape == (steps + 5, 2) and all(len(a) == steps + 5 for a in (rewards, episode, terminated, truncated))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(rewards)), np.cumsum([len(e) + 1 for e in episodes]) - 1)
    for number, one in enumerate(episodes):
        mine = episode == number
        np.testing.assert_array_equal(X[mine], one.observations)
        np.testing.assert_array_equal(rewards[mine][:-1], one.rewards)
        np.testing.assert_array_equal(terminated[mine], [*one.terminations, False])
        np.testing.assert_array_equal(truncated[mine], [*one.truncations, False])
    assert episodes[1:3].arrays().episode.min() == 1
    assert [e.id for e in episodes[::-1]] == [4, 3, 2, 1, 0]


def test_files_say_the_same_as_arrays(tmp_path):
    episodes = ictd.collect(Walk(), None, episodes=3, seed=2)
    table = episodes.arrays()
    actions = np.concatenate([[*e.actions, np.nan] for e in episodes])
    for name in ("log.csv", "log.npz", "log.jsonl", "again.NPZ"):
        episodes.save(tmp_path / name)
        if name.endswith("csv"):
            with open(tmp_path / name, newline="") as file:
                rows = list(csv.DictReader(file))
            columns = {key: np.array([float(row[key] or "nan") for row in rows]) for key in rows[0]}
            assert all("." not in row["action"] for row in rows)
        elif name.endswith("jsonl"):
            rows = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
            columns = {key: np.array([np.nan if row[key] is None else row[key] for row in rows], dtype=float) for key in rows[0]}
            assert rows[0]["terminated"] is False and type(rows[0]["action"]) is int
        else:
            columns = np.load(tmp_path / name)
        assert list(columns) == ["episode", "t", "obs_0", "obs_1", "action", "reward", "terminated", "truncated"]
        np.testing.assert_array_equal(np.column_stack([columns["obs_0"], columns["obs_1"]]), table.X)
        np.testing.assert_array_equal(columns["reward"], table.rewards)
        np.testing.assert_array_equal(columns["action"], actions)
        np.testing.assert_array_equal(columns["t"], np.concatenate([np.arange(len(e) + 1) for e in episodes]))
        for key in ("episode", "terminated", "truncated"):
            np.testing.assert_array_equal(columns[key], getattr(table, key))


PROGRAM = os.environ.get("ICTD_BINARY") or shutil.which("ictd")


@pytest.mark.skipif(PROGRAM is None, reason="no ictd on the path")
@pytest.mark.parametrize("observe", [lambda k: k, lambda k: "abcdefgh"[k], lambda k: [k, 0.5], lambda k: {"at": k, "place": [k, -k / 2]}])
def test_the_program_reads_files_as_they_are_meant(observe, tmp_path):
    class Back(Counter):
        """Sometimes truncated, sometimes terminated, rewards 1."""

        def __init__(self):
            super().__init__(start=4, observe=observe, reward=lambda left: 1.0)
            self.rng = np.random.default_rng(0)

        def step(self, action):
            self.left += 1 if action and self.left < 7 else -1
            return self.observe(self.left), 1.0, self.left == 0, bool(self.rng.random() < 0.02), {}

    def policy(observation, rng):
        return int(rng.random() < 0.3)

    episodes = ictd.collect(Back(), policy, episodes=60, seed=0)
    cut = sum(e.truncated and not e.terminated for e in episodes)
    assert 0 < cut < 60
    answers = []
    for ending in ("csv", "npz", "jsonl"):
        path = tmp_path / f"log.{ending}"
        episodes.save(path)
        done = subprocess.run([PROGRAM, "evaluate", path, "--gamma", "0.9", "--json", "--estimator", "lstd"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["counts"]["episodes"] == 60 and answer["counts"]["transitions"] == sum(map(len, episodes)), answer["counts"]
        assert not answer["warnings"], answer["warnings"]
        answers.append(answer["rows"])
    assert answers[0] == answers[1] == answers[2]
    # Tabular least squares by hand: the terminal state is worth 0, the state in which recording stopped what it is worth.
    A, b = np.zeros((8, 8)), np.zeros(8)
    for e in ictd.collect(type("Plain", (Back,), {})(), policy, episodes=60, seed=0):
        states = e.observations if e.observations.ndim == 1 else e.observations[:, 0]
        states = ["abcdefgh".index(s) for s in states] if states.dtype.kind == "U" else states.astype(int)
        for t, (s, s_next) in enumerate(zip(states, states[1:], strict=False)):
            A[s, s] += 1
            A[s, s_next] -= 0.9 * (not e.terminations[t])
            b[s] += e.rewards[t]
    values = np.linalg.solve(A[1:, 1:], b[1:])
    assert sorted(round(row["value"], 6) for row in answers[0] if row["visits"]) == pytest.approx(sorted(values), abs=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_episodes_are_those_of_minari(tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    for needed in ("h5py", "PIL"):
        pytest.importorskip(needed)
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = gymnasium.make("CartPole-v1")
    episodes = ictd.collect(env, None, episodes=3, seed=0)
    data = minari.create_dataset_from_buffers("ictd/cartpole-v0", [EpisodeBuffer(**d) for d in episodes.dicts()], env=env)
    for mine, theirs in zip(episodes, data.iterate_episodes(), strict=True):
        assert mine.id == theirs.id and len(mine) == len(theirs)
        for name in ("observations", "actions", "rewards", "terminations", "truncations"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
            assert getattr(mine, name).dtype == getattr(theirs, name).dtype, name


@pytest.mark.skipif(not hasattr(ictd, "as_log"), reason="no logs here")
@pytest.mark.parametrize("observe", [lambda k: k, lambda k: "abcd"[k], lambda k: [k, 0.5], lambda k: {"at": k, "place": [k, -k / 2]}])
def test_episodes_are_a_log(observe):
    episodes = ictd.collect(Counter(observe=observe), lambda state: 0, episodes=3, seed=0)
    for log in (ictd.as_log(episodes), ictd.as_log(episodes.dicts()), ictd.as_log(list(episodes))):
        np.testing.assert_array_equal(np.asarray(log.states)[:3], episodes.arrays().X[:3])
        np.testing.assert_array_equal(log.rewards[~np.isnan(log.rewards)], np.tile([2.0, 1.0, 0.0], 3))
        assert np.asarray(log.terminated).sum() == 3 and not np.asarray(log.truncated).any()


def test_episodes_can_be_pickled_and_copied():
    episodes = ictd.collect(Walk(), None, episodes=2, seed=0)
    for again in (pickle.loads(pickle.dumps(episodes)), copy.deepcopy(episodes)):
        np.testing.assert_array_equal(again.arrays().X, episodes.arrays().X)
        assert again.state_columns == episodes.state_columns


@needs_gymnasium
def test_examples_in_the_documentation_run():
    import doctest

    found = [doctest.testmod(module) for module in (ictd.gym, ictd.recording)]
    assert sum(one.attempted for one in found) > 5 and not any(one.failed for one in found)
