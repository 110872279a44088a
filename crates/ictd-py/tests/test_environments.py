"""Tasks as environments of Gymnasium: `ictd.environments` and `ictd.registration`."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import numpy as np
import pytest

import ictd
from ictd.errors import InputError, InputTypeError

HERE = Path(__file__).parent
PACKAGE = Path(ictd.__file__).parent

try:
    import gymnasium
except ImportError:
    gymnasium = None
needs_gymnasium = pytest.mark.skipif(gymnasium is None, reason="Gymnasium is not installed")

IDS = ["ictd/BoyanChain-v0", "ictd/Loop-v0", "ictd/Dense-v0"]


@needs_gymnasium
@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("observation", ["features", "state"])
@pytest.mark.filterwarnings("error")
def test_environments_keep_to_the_interface(id, observation):
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make(id, observation=observation, task_seed=3)
    check_env(env.unwrapped)
    states = {"ictd/BoyanChain-v0": 64}.get(id, 10)
    if observation == "state":
        assert env.observation_space == gymnasium.spaces.Discrete(states)
    else:
        assert env.observation_space.shape == env.unwrapped.task.features.shape[1:] and env.observation_space.dtype == np.float64
    assert env.action_space == gymnasium.spaces.Discrete(1)
    assert env.unwrapped.task.P.shape == (states, states)


@needs_gymnasium
def test_observations_rewards_and_states_are_those_of_the_task():
    both = [ictd.collect(gymnasium.make(IDS[0], observation=o, states=7, features=3, horizon=50), None, episodes=4, seed=1) for o in ("features", "state")]
    task = gymnasium.make(IDS[0], states=7, features=3).unwrapped.task
    for seen, numbered in zip(*both, strict=True):
        s = numbered.observations
        assert s.dtype == np.int64 and len(seen) == 50 and seen.truncated and not seen.terminated
        np.testing.assert_array_equal(seen.observations, np.asarray(task.features)[s])
        np.testing.assert_array_equal(seen.rewards, np.asarray(task.rewards)[s[:-1]])
        assert (np.asarray(task.P)[s[:-1], s[1:]] > 0).all()


@needs_gymnasium
@pytest.mark.parametrize("id", IDS)
def test_frequencies_are_those_of_the_task(id):
    env = gymnasium.make(id, observation="state", states=5, horizon=20, gamma=0.8)
    episodes = ictd.collect(env, None, episodes=2000, seed=0)
    task = env.unwrapped.task
    assert task.gamma == 0.8
    starts = np.bincount([e.observations[0] for e in episodes], minlength=5) / len(episodes)
    # Five standard errors of a share are at most 2.5 / √n.
    np.testing.assert_allclose(starts, task.initial, atol=2.5 / np.sqrt(len(episodes)))
    moves = np.zeros((5, 5))
    for e in episodes:
        np.add.at(moves, (e.observations[:-1], e.observations[1:]), 1)
    visits = moves.sum(axis=1, keepdims=True)
    assert (np.abs(moves / visits - task.P) <= 2.5 / np.sqrt(visits)).all()
    # The values of the task solve its own Bellman equation: what it says of itself fits what it does.
    np.testing.assert_allclose(task.values, task.rewards + task.gamma * np.asarray(task.P) @ task.values, atol=1e-9)


@needs_gymnasium
def test_the_task_is_of_its_seed_and_stays():
    env = gymnasium.make(IDS[2], task_seed=1)
    before = np.array(env.unwrapped.task.P)
    env.reset(seed=5)
    np.testing.assert_array_equal(env.unwrapped.task.P, before)
    np.testing.assert_array_equal(gymnasium.make(IDS[2], task_seed=1).unwrapped.task.P, before)
    for other in ({"task_seed": 2}, {"task_seed": 1, "task_index": 1}):
        assert (gymnasium.make(IDS[2], **other).unwrapped.task.P != before).any()
    free = gymnasium.make(IDS[2], task_seed=1, representable=False).unwrapped.task
    assert np.abs(free.rewards).max() <= 1


@needs_gymnasium
def test_an_environment_without_a_horizon_never_ends():
    env = gymnasium.make(IDS[1], horizon=None)
    assert len(ictd.collect(env, None, episodes=1, seed=0, max_steps=1000)[0]) == 1000


@needs_gymnasium
@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("observation is 'pixels', expected 'features' or 'state'", {"observation": "pixels"}),
        ("horizon is 0, expected a whole number, 1 or more", {"horizon": 0}),
        ("task_seed is -1, expected a whole number, 0 or more", {"task_seed": -1}),
        ("render_mode is 'human'", {"render_mode": "human"}),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_environments_refuse_what_they_cannot_be(text, keywords):
    with pytest.raises(ValueError, match=text):
        gymnasium.make(IDS[0], **keywords)


@needs_gymnasium
def test_a_step_before_a_reset_is_refused():
    from ictd.environments import Dense

    with pytest.raises(InputError, match="step was called before reset"):
        Dense().step(0)


@needs_gymnasium
def test_environments_can_be_copied_and_run_in_vectors():
    env = gymnasium.make(IDS[0], states=5).unwrapped
    env.reset(seed=0)
    again = copy.deepcopy(env)
    for _ in range(20):
        a, b = env.step(0), again.step(0)
        np.testing.assert_array_equal(a[0], b[0])
        assert a[1:] == b[1:]
    vector = gymnasium.vector.SyncVectorEnv([lambda k=k: gymnasium.make(IDS[0], task_seed=k) for k in range(3)])
    seen, _ = vector.reset(seed=0)
    assert seen.shape == (3, 4)
    with pytest.raises(InputTypeError, match="several environments in one"):
        ictd.collect(vector, None, 1, 0)
    vector.close()


# --- registration: every test in an interpreter of its own


@pytest.fixture
def run(tmp_path):
    """Runs a script where ictd is installed, entry points and all."""
    about = tmp_path / "ictd-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ictd\nVersion: 0\n")
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    (entries,) = project["entry-points"].items()
    assert entries[0] == "gymnasium.envs"
    (about / "entry_points.txt").write_text("\n".join([f"[{entries[0]}]", *(f"{name} = {value}" for name, value in entries[1].items())]) + "\n")
    path = os.pathsep.join(map(str, [tmp_path, PACKAGE.parent, HERE]))

    def run(script, *, installed=True, warnings="error"):
        found = path if installed else path.removeprefix(f"{tmp_path}{os.pathsep}")
        command = [sys.executable, "-W", warnings, "-c", textwrap.dedent(script)]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": found}, cwd=HERE)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


MAKE = "print(gymnasium.make('ictd/BoyanChain-v0').unwrapped.task.P.shape[0], *[id for id in gymnasium.registry if id.startswith('ictd/')])\n"
MADE = ["64", *IDS]


@needs_gymnasium
@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("first", ["import ictd, gymnasium", "import gymnasium, ictd", "import gymnasium\nfrom ictd import collect", "import ictd, gymnasium, importlib; importlib.reload(ictd)"])
def test_tasks_are_registered_whatever_is_imported_first(run, first, installed):
    assert run(first + "\n" + MAKE, installed=installed) == MADE


@needs_gymnasium
def test_tasks_are_found_without_an_import_of_ictd(run):
    if int(gymnasium.__version__.partition(".")[0]) < 1:
        assert run("import gymnasium\n" + MAKE) == MADE
    # Gymnasium 1 calls no entry points; an id may say what to import.
    assert run("import gymnasium\ngymnasium.make('ictd:ictd/Loop-v0')\n" + MAKE) == MADE


@needs_gymnasium
def test_import_of_ictd_does_not_import_gymnasium(run):
    assert run("import sys, ictd; print('gymnasium' in sys.modules, 'ictd.environments' in sys.modules)") == ["False", "False"]


@needs_gymnasium
def test_the_import_of_gymnasium_is_left_as_it_was(run):
    # Asked for and not imported, imported, reloaded; its loader is the usual one, and no finder stays behind.
    script = """
    import importlib, importlib.util, sys
    before = list(sys.meta_path)
    import ictd
    assert len(sys.meta_path) == len(before) + 1
    import gymnasium.core
    assert sys.meta_path == before
    spec = sys.modules["gymnasium.envs"].__spec__
    assert type(spec.loader).__name__ == "SourceFileLoader" and "exec_module" not in vars(spec.loader), spec
    assert "CartPole-v1" in gymnasium.registry and "ictd/Loop-v0" in gymnasium.registry
    """
    run(script)
    script = """
    import ictd, sys, importlib.machinery
    import gymnasium.envs as first
    for name in [name for name in sys.modules if name.startswith("gymnasium")]:
        del sys.modules[name]
    sys.modules.pop("ictd"), sys.modules.pop("ictd.registration")
    import ictd
    hook = sys.meta_path[0]
    assert hook.find_spec("gymnasium", None) is None
    assert hook.find_spec("gymnasium.envs", [first.__path__[0].removesuffix("envs")]).origin.endswith("__init__.py")
    import gymnasium
    assert "ictd/Loop-v0" in gymnasium.registry
    """
    run(script, warnings="default")


@needs_gymnasium
def test_gymnasium_is_imported_even_if_registration_fails(run):
    script = """
    import warnings, ictd.registration
    ictd.registration.register = lambda: 1 / 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import gymnasium
    print(*[str(w.message) for w in caught if "ictd" in str(w.message)][:1])
    gymnasium.make("CartPole-v1")
    """
    assert " ".join(run(script, installed=False)).startswith("the tasks of ictd are not known to Gymnasium: ZeroDivisionError")


def test_import_without_gymnasium(run):
    script = """
    import sys
    sys.modules["gymnasium"] = None
    import ictd
    class Env:
        def reset(self, *, seed=None): return 0, {}
        def step(self, action): return 1, 1.0, True, False, {}
    print(len(ictd.collect(Env(), abs, 2, 0)))
    try: import ictd.environments
    except ImportError: print("none")
    """
    assert run(script) == ["2", "none"]


def test_the_import_takes_little_beyond_numpy(run):
    script = "import time, numpy; t = time.perf_counter(); import ictd; print(time.perf_counter() - t)"
    # The best of several: a busy machine makes it longer, nothing makes it shorter.
    assert min(float(run(script)[0]) for _ in range(5)) < 0.15
