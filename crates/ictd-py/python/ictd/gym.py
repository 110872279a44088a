"""Episodes of environments: :func:`collect` runs a policy and keeps what the estimators, ``ictd evaluate`` and Minari need.

Neither this module nor ``import ictd`` imports Gymnasium: environments are known by what they can do.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ictd._checks import whole
from ictd.errors import InputError, InputTypeError
from ictd.recording import Array, Episode, Episodes

__all__ = ["Environment", "Policy", "collect"]

Policy = Callable[[Any], Any] | Callable[[Any, "np.random.Generator"], Any]
"""From an observation, and where it wants one a random generator, to an action."""


class Environment(Protocol):
    """What :func:`collect` needs of an environment: two methods of ``gymnasium.Env``."""

    def reset(self, *, seed: int | None = None) -> tuple[Any, Any]: ...

    def step(self, action: Any, /) -> tuple[Any, Any, Any, Any, Any]: ...


def collect(env: Environment | str, policy: Policy | None, episodes: int, seed: int, *, max_steps: int | None = None) -> Episodes:
    """Runs a policy in a Gymnasium environment and records what happens.

    Args:
        env: an environment, or the id of one, which is then made with ``gymnasium.make`` and closed at the end. Of an object only
            ``reset(seed=…)`` and ``step(action)`` are used, and ``action_space`` where there is one.
        policy: a function of an observation that returns an action. One that has a parameter ``rng``, or that needs two arguments, gets
            a random generator too. ``None`` draws actions from ``env.action_space.sample``.
        episodes: how many, at least 1.
        seed: of everything that is random: the environment, which gets it with its first reset and no other seed afterwards, the action
            space and the generator of the policy. These three are independent of each other. The same seed gives the same bytes, if the
            environment keeps to what it is seeded with.
        max_steps: cuts episodes that are longer, as truncated ones. Without it an environment that never ends runs for ever.

    Returns:
        Episodes with T + 1 observations for T steps and both flags. Observations are numbers of any shape, whole numbers or texts; dictionaries
        are flattened by key, sorted, and tuples by position, so that every observation is one vector. All is copied.

    An action outside of the action space, and rewards or observations that are not finite numbers, are refused with the step and the
    episode. Numbers beyond the bounds of a box are left to the environment, for some take them. What environment or policy raise
    passes through.

    >>> import importlib.util, ictd
    >>> if importlib.util.find_spec("gymnasium"):
    ...     episodes = ictd.collect("CartPole-v1", lambda observation: int(observation[2] > 0), episodes=3, seed=0)
    ...     print([len(episode) for episode in episodes], episodes[0].observations.shape, episodes[0].terminated)
    ... else:
    ...     print("[41, 32, 34] (42, 4) True")
    [41, 32, 34] (42, 4) True
    """
    episodes, seed = whole("episodes", episodes, 1), whole("seed", seed)
    max_steps = None if max_steps is None else whole("max_steps", max_steps, 1)
    ask = _asking(policy)
    if not isinstance(env, str):
        return _Run(_checked(env), ask, seed, max_steps).episodes(episodes)
    if importlib.util.find_spec("gymnasium") is None:
        raise InputError(f"env is the id '{env}' and Gymnasium is not installed, expected an environment, or pip install gymnasium")
    made = importlib.import_module("gymnasium").make(env)
    try:
        return _Run(_checked(made), ask, seed, max_steps).episodes(episodes)
    finally:
        made.close()


class _Run:
    """A policy in an environment."""

    def __init__(self, env: Environment, ask: _Ask | None, seed: int, max_steps: int | None) -> None:
        self.seed, self.max_steps = seed, max_steps
        # Whatever it is that it returns is looked at.
        self.env: Any = env
        self.space: Any = getattr(env, "action_space", None)
        self.contains, self.box = _method(self.space, "contains"), hasattr(self.space, "low")
        # The spaces and environments of Gymnasium make the same stream of the same number: random actions would go with what the environment draws.
        actions, policy = np.random.SeedSequence(seed).spawn(2)
        seed_space = _method(self.space, "seed")
        if seed_space is not None:
            seed_space(int(actions.generate_state(1)[0]))
        self.rng = np.random.default_rng(policy)
        if ask is None and _method(self.space, "sample") is None:
            raise InputTypeError(f"env is {_brief(env)} without an action_space to draw actions from, expected one that has it, or a policy")
        self.ask: _Ask | None = ask
        self.seen, self.done = _Shape("observation", "state", "obs"), _Shape("action", "action", "action")

    def episodes(self, count: int) -> Episodes:
        found = [self.episode(number) for number in range(count)]
        return Episodes(found, self.seen.columns, self.done.columns)

    def episode(self, number: int) -> Episode:
        began = self.env.reset(seed=self.seed) if number == 0 else self.env.reset()
        if not (_is(began, tuple) and len(began) == 2):
            raise InputTypeError(f"env.reset returned {_brief(began)}, expected an observation and a dictionary, as since Gymnasium 0.26")
        observation = began[0]
        observations = [self.seen.of(observation, 0, number)]
        actions: list[Array] = []
        rewards: list[float] = []
        terminated = truncated = False
        while not (terminated or truncated):
            t = len(rewards)
            action = self.allowed(self.ask(observation, self.rng) if self.ask else self.space.sample(), t, number)
            # Before the step: an environment may write into it.
            actions.append(self.done.of(action, t, number))
            made = self.env.step(action)
            if not (_is(made, tuple) and len(made) == 5):
                raise InputTypeError(
                    f"env.step returned {_brief(made)}, expected observation, reward, terminated, truncated and a dictionary, as since Gymnasium 0.26"
                )
            observation, reward, *flags, _ = made
            rewards.append(_reward(reward, t, number))
            terminated, truncated = (_flag(name, flag, t, number) for name, flag in zip(("terminated", "truncated"), flags, strict=True))
            truncated = truncated or (t + 1 == self.max_steps and not terminated)
            observations.append(self.seen.of(observation, t + 1, number))
        last = np.arange(len(rewards)) == len(rewards) - 1
        return Episode(
            id=number,
            observations=np.stack(observations),
            actions=np.stack(actions),
            rewards=np.array(rewards),
            terminations=last & terminated,
            truncations=last & truncated,
        )

    def allowed(self, action: Any, t: int, number: int) -> Any:
        """The action, as the action space has it where only the type of its numbers differs."""
        if _is(action, np.ndarray):
            # One number as one that can be the key of a dictionary.
            action = action[()]
        if self.contains is None:
            return action
        # A box takes lists with a warning.
        if (not self.box or _is(action, np.ndarray)) and self.contains(action):
            return action
        numbers = _cast(action, getattr(self.space, "shape", None), getattr(self.space, "dtype", None))
        # To clip what is beyond the bounds of a box is up to the environment.
        if numbers is not None and (np.isfinite(numbers).all() if self.box else self.contains(numbers)):
            return numbers
        raise InputError(f"policy returned {_brief(action)} at step {t} of episode {number}, expected an action of {self.space}")


def _cast(action: Any, shape: Any, dtype: Any) -> Any:
    """The numbers in that shape and as that type, if they lose nothing but digits."""
    if shape is None or dtype is None:
        return None
    try:
        found = np.asarray(action)
    except (TypeError, ValueError):
        return None
    if found.shape != tuple(shape) or found.dtype.kind not in "biuf":
        return None
    if np.dtype(dtype).kind != "f" and not np.array_equal(found, np.trunc(found)):
        return None
    return found.astype(dtype)[()]


_Where = Callable[[], str]


class _Shape:
    """The shape of all observations, or of all actions: that of the first."""

    def __init__(self, what: str, one: str, many: str) -> None:
        self.what, self.one, self.many = what, one, many
        self.columns: tuple[str, ...] = ()
        self.shape: tuple[int, ...] = ()
        self.texts = False

    def of(self, thing: Any, t: int, number: int) -> Array:
        """A copy as an array, of the shape of those before."""
        array, columns = self.flat(thing, lambda: f"{self.what} {_brief(thing)} at step {t} of episode {number}")
        texts = array.dtype.kind == "U"
        if texts and self.what == "action":
            raise InputTypeError(f"action at step {t} of episode {number} is {_brief(thing)}, expected numbers")
        if not self.columns:
            self.columns, self.shape, self.texts = columns, array.shape, texts
        elif (columns, array.shape, texts) != (self.columns, self.shape, self.texts):
            raise InputError(
                f"{self.what} at step {t} of episode {number} is {_brief(thing)}, expected the columns {_listed(self.columns)} and the shape {self.shape} of the first"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{self.what} at step {t} of episode {number} is {_brief(thing)}, expected finite numbers")
        return array

    def flat(self, thing: Any, where: _Where) -> tuple[Array, tuple[str, ...]]:
        if isinstance(thing, (Mapping, tuple)):
            named = [pair for part in _parts(thing, self.many) for pair in self.part(*part, where)]
            arrays, names = [array for array, _ in named], [name for _, found in named for name in found]
            twice = {name for name in names if names.count(name) > 1}
            if twice or not names:
                raise InputError(f"{where()} has {'columns of one name: ' + _listed(sorted(twice)) if twice else 'no parts'}, expected parts of different names")
            if len({array.dtype.kind == "U" for array in arrays}) > 1 or arrays[0].dtype.kind == "U":
                raise InputTypeError(f"{where()} has texts in its parts, expected numbers")
            return np.concatenate(arrays), tuple(names)
        array = _numbers(thing, where)
        if array.ndim == 0:
            return array, (self.one,)
        # Names by position only once: all that follow have the shape of the first.
        if array.shape == self.shape:
            return array, self.columns
        return array, tuple(f"{self.many}_{k}" for k in range(array.size))

    def part(self, name: str, thing: Any, where: _Where) -> Iterator[tuple[Array, list[str]]]:
        array = _numbers(thing, where)
        yield array.reshape(-1), [name] if array.ndim == 0 else [f"{name}_{k}" for k in range(array.size)]


def _parts(thing: Any, name: str) -> Iterator[tuple[str, Any]]:
    """What dictionaries and tuples have in them, with names: dictionaries sorted by key."""
    if _is(thing, Mapping):
        for key in sorted(thing, key=str):
            yield from _parts(thing[key], f"{name}_{key}")
    elif _is(thing, tuple):
        for k, part in enumerate(thing):
            yield from _parts(part, f"{name}_{k}")
    else:
        yield name, thing


def _numbers(thing: Any, where: _Where) -> Array:
    """A copy as an array of numbers or of one text; what is whole by itself is of 64 bits."""
    try:
        array = np.array(thing)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{where()} is no array ({error}), expected numbers of one shape") from error
    if array.dtype.kind == "U" and array.ndim == 0:
        return array
    if array.dtype.kind not in "biuf":
        raise InputTypeError(f"{where()} is a {type(thing).__name__}, expected numbers")
    return array.astype(np.int64) if array.ndim == 0 and array.dtype.kind != "f" else array


def _reward(reward: Any, t: int, number: int) -> float:
    if type(reward) is float and math.isfinite(reward):
        return reward
    where = f"reward at step {t} of episode {number} is {_brief(reward)}"
    try:
        found = np.asarray(reward, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{where}, expected a number") from error
    if found.size != 1:
        raise InputTypeError(f"{where}, expected one number")
    if not np.isfinite(found).all():
        raise InputError(f"{where}, expected a finite number")
    return float(found.item())


def _flag(name: str, flag: Any, t: int, number: int) -> bool:
    if type(flag) in (bool, np.bool_):
        return bool(flag)
    found = np.asarray(flag)
    if found.size != 1 or found.dtype.kind not in "biu" or found.item() not in (0, 1):
        raise InputTypeError(f"{name} at step {t} of episode {number} is {_brief(flag)}, expected True or False")
    return bool(found.item())


_Ask = Callable[[Any, "np.random.Generator"], Any]


def _asking(policy: Any) -> _Ask | None:
    """The policy as a function of both, whether or not it wants the generator."""
    if policy is None:
        return None
    if not callable(policy):
        raise InputTypeError(f"policy is {_brief(policy)}, expected a function of an observation, or None for random actions")
    try:
        signature = inspect.signature(policy)
    except (TypeError, ValueError):
        return lambda observation, rng: policy(observation)
    named = signature.parameters.get("rng")
    if named is not None and named.kind in (named.POSITIONAL_OR_KEYWORD, named.KEYWORD_ONLY) and _takes(signature, None, rng=None):
        return lambda observation, rng: policy(observation, rng=rng)
    if _takes(signature, None):
        return lambda observation, rng: policy(observation)
    if _takes(signature, None, None):
        return lambda observation, rng: policy(observation, rng)
    raise InputTypeError(f"policy takes {signature}, expected a function of an observation, or of an observation and a random generator")


def _takes(signature: inspect.Signature, *arguments: None, **named: None) -> bool:
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        return False
    return True


def _checked(env: Any) -> Environment:
    if isinstance(env, type):
        raise InputTypeError(f"env is the class {env.__name__}, expected an environment: call it first")
    if not (callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))):
        raise InputTypeError(f"env is {_brief(env)}, expected a Gymnasium environment, with reset and step, or the id of one")
    if hasattr(getattr(env, "unwrapped", env), "single_action_space"):
        raise InputTypeError(f"env is {_brief(env)}, several environments in one, expected a single one")
    checked: Environment = env
    return checked


def _method(thing: Any, name: str) -> Callable[..., Any] | None:
    found = getattr(thing, name, None)
    return found if callable(found) else None


def _is(thing: Any, kind: type) -> bool:
    """``isinstance`` of what may be anything, and stays so for those who check types."""
    return isinstance(thing, kind)


def _brief(thing: Any) -> str:
    """What something is, in a few words."""
    text = " ".join(repr(thing).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:8])}, … ({len(names)})"
