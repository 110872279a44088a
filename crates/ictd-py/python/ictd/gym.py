"""Gymnasium: episodes of environments, and the library's random tasks as environments.

:func:`collect` runs a policy and keeps what the estimators, ``ictd evaluate`` and Minari need. :func:`register` makes the environments of
:mod:`ictd.environments` known to ``gymnasium.make``. Neither this module nor ``import ictd`` imports Gymnasium: environments are known by
what they can do, and tasks are registered when Gymnasium is imported, before or after.

How ``gymnasium.make("ictd/BoyanChain-v0")`` finds them depends on Gymnasium. Version 0.29 calls the entry points of installed packages, so
that nothing else is needed. Versions from 1.0 on have no entry points: ``import ictd`` comes first, or
``gymnasium.make("ictd:ictd/BoyanChain-v0")``, which imports it.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import inspect
import json
import math
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast, overload

import numpy as np
import numpy.typing as npt

from ictd.errors import InputError, InputTypeError

__all__ = ["Arrays", "Environment", "Episode", "Episodes", "Policy", "collect", "register"]

Array = npt.NDArray[Any]

Policy = Callable[[Any], Any] | Callable[[Any, "np.random.Generator"], Any]
"""From an observation, and where it wants one a random generator, to an action."""


class Environment(Protocol):
    """What :func:`collect` needs of an environment: two methods of ``gymnasium.Env``."""

    def reset(self, *, seed: int | None = None) -> tuple[Any, Any]: ...

    def step(self, action: Any, /) -> tuple[Any, Any, Any, Any, Any]: ...


class Arrays(NamedTuple):
    """Episodes as one table, a row per observation: T + 1 rows for T steps."""

    X: Array
    """States that were left: (rows, features), or (rows,) where they are whole numbers or texts without further meaning."""
    rewards: npt.NDArray[np.float64]
    """Rewards of leaving them; NaN in the last row of an episode, whose state nobody left."""
    episode: npt.NDArray[np.int64]
    """The number of the episode."""
    terminated: npt.NDArray[np.bool_]
    """Whether the step led into a terminal state."""
    truncated: npt.NDArray[np.bool_]
    """Whether the episode was cut short after the step."""


@dataclass(frozen=True, eq=False, repr=False)
class Episode:
    """One episode of T steps, with the attributes of Minari's ``EpisodeData``."""

    id: int
    """Its number, from 0."""
    observations: Array
    """T + 1 observations: what was seen before every step, and after the last."""
    actions: Array
    """T actions, as the environment got them."""
    rewards: npt.NDArray[np.float64]
    """T rewards."""
    terminations: npt.NDArray[np.bool_]
    """T flags: whether the step led into a terminal state."""
    truncations: npt.NDArray[np.bool_]
    """T flags: whether the episode was cut short after the step."""

    @property
    def terminated(self) -> bool:
        """Whether the episode ended in a terminal state."""
        return bool(self.terminations[-1])

    @property
    def truncated(self) -> bool:
        """Whether the episode was cut short."""
        return bool(self.truncations[-1])

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        end = "terminated" if self.terminated else "truncated"
        return f"<episode {self.id}: {len(self)} steps, {end}, rewards sum to {self.rewards.sum():.6g}>"


class Episodes(Sequence[Episode]):
    """Episodes of one environment, as :func:`collect` makes them: a sequence of :class:`Episode`."""

    def __init__(self, episodes: Iterable[Episode], state_columns: Sequence[str], action_columns: Sequence[str]) -> None:
        self._episodes = tuple(episodes)
        self.state_columns = tuple(state_columns)
        """Names of the columns of X in files: ``state`` where an observation is one thing, ``obs_0``, ``obs_1``, … where it is a vector, ``obs_KEY…`` for parts of dictionaries."""
        self.action_columns = tuple(action_columns)
        """The same of actions: ``action``, or ``action_0``, …"""

    def __len__(self) -> int:
        return len(self._episodes)

    @overload
    def __getitem__(self, index: int) -> Episode: ...
    @overload
    def __getitem__(self, index: slice) -> Episodes: ...
    def __getitem__(self, index: int | slice) -> Episode | Episodes:
        if isinstance(index, slice):
            return Episodes(self._episodes[index], self.state_columns, self.action_columns)
        return self._episodes[index]

    def __repr__(self) -> str:
        steps, cut = sum(map(len, self)), sum(episode.truncated and not episode.terminated for episode in self)
        mean = sum(episode.rewards.sum() for episode in self) / max(len(self), 1)
        return f"<{len(self)} episodes, {steps} steps, {cut} cut short, rewards sum to {mean:.6g} on average>"

    def arrays(self) -> Arrays:
        """All episodes as one table: ``X, rewards, episode, terminated, truncated``, with T + 1 rows for T steps.

        The last row of an episode has the state in which it ended or was cut short, and NaN for a reward: it is there so that the last
        step has a next state. This is the convention of the library's tables (``docs/formats.md``).

        >>> from ictd.gym import collect
        >>> class Coin:  # any object with these two methods
        ...     def reset(self, *, seed=None):
        ...         self.left = 2
        ...         return self.left, {}
        ...     def step(self, action):
        ...         self.left -= 1
        ...         return self.left, 1.0, self.left == 0, False, {}
        >>> X, rewards, episode, terminated, truncated = collect(Coin(), lambda state: 0, episodes=2, seed=0).arrays()
        >>> X
        array([2, 1, 0, 2, 1, 0])
        >>> rewards
        array([ 1.,  1., nan,  1.,  1., nan])
        >>> terminated
        array([False,  True, False, False,  True, False])
        """
        self._some()
        observations = np.concatenate([episode.observations for episode in self])
        return Arrays(
            X=_table(observations) if self._vectors() else observations,
            rewards=np.concatenate([_with_last(episode.rewards, np.nan) for episode in self]),
            episode=np.concatenate([np.full(len(episode) + 1, episode.id, dtype=np.int64) for episode in self]),
            terminated=np.concatenate([_with_last(episode.terminations, False) for episode in self]),
            truncated=np.concatenate([_with_last(episode.truncations, False) for episode in self]),
        )

    def dicts(self) -> list[dict[str, Any]]:
        """Episodes as dictionaries with the keys of Minari: ``minari.data_collector.EpisodeBuffer(**d)`` takes one as it is,
        and ``minari.create_dataset_from_buffers`` a list of those."""
        names = ("id", "observations", "actions", "rewards", "terminations", "truncations")
        return [{name: getattr(episode, name) for name in names} for episode in self]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table of :meth:`arrays`, and the actions, as ``.csv``, ``.npz`` or ``.jsonl``: what ``ictd evaluate`` and
        ``ictd convert`` read. The same episodes give the same bytes."""
        name: str = os.fspath(path)
        kind = os.path.splitext(name)[1].lower()
        if kind not in (".csv", ".npz", ".jsonl"):
            raise InputError(f"episodes are to be written to '{name}', expected a name that ends in .csv, .npz or .jsonl")
        columns = self._columns()
        if kind == ".npz":
            with open(path, "wb") as file:
                np.savez(file, **{name: column for name, (column, _) in columns.items()})  # type: ignore[arg-type, unused-ignore]
            return
        cells = [_cells(column, whole) for column, whole in columns.values()]
        with open(path, "w", encoding="utf-8", newline="") as file:
            if kind == ".csv":
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(columns)
                writer.writerows(zip(*([int(x) if isinstance(x, bool) else x for x in column] for column in cells), strict=True))
            else:
                file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in zip(*cells, strict=True))

    def _some(self) -> None:
        if not self:
            raise InputError("there are 0 episodes, expected at least 1")

    def _vectors(self) -> bool:
        """Whether observations are features, not labels."""
        first = self[0].observations
        return first.ndim > 1 or first.dtype.kind == "f"

    def _columns(self) -> dict[str, tuple[Array, bool]]:
        """The columns of files by name, each with whether what is not NaN in it is whole."""
        X, rewards, episode, terminated, truncated = self.arrays()
        columns: dict[str, tuple[Array, bool]] = {"episode": (episode, True), "t": (np.concatenate([np.arange(len(e) + 1) for e in self]), True)}
        columns |= {name: (column, False) for name, column in zip(self.state_columns, _table(X).T, strict=True)}
        # Nobody acted in the last row.
        actions = [_table(episode.actions) for episode in self]
        whole = all(a.dtype.kind in "biu" for a in actions)
        acted = np.concatenate([np.vstack([a.astype(np.float64), np.full((1, a.shape[1]), np.nan)]) for a in actions])
        columns |= {name: (column, whole) for name, column in zip(self.action_columns, acted.T, strict=True)}
        return columns | {"reward": (rewards, False), "terminated": (terminated, False), "truncated": (truncated, False)}


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
    episodes, seed = whole("episodes", episodes, 1), whole("seed", seed, 0)
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


def whole(name: str, value: Any, least: int) -> int:
    """A whole number, at least that."""
    try:
        found = operator.index(value)
    except TypeError:
        raise InputTypeError(f"{name} is {_brief(value)}, expected a whole number") from None
    if found < least:
        raise InputError(f"{name} is {found}, expected at least {least}")
    return found


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


def _table(array: Array) -> Array:
    """A row per entry."""
    return array.reshape(len(array), -1)


def _with_last(array: Array, last: Any) -> Array:
    return np.append(array, np.asarray(last, dtype=array.dtype))


def _cells(column: Array, whole: bool) -> list[Any]:
    """Numbers as Python has them, ``None`` for NaN."""
    return [None if x != x else int(x) if whole else x for x in column.tolist()]


def _brief(thing: Any) -> str:
    """What something is, in a few words."""
    text = " ".join(repr(thing).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:8])}, … ({len(names)})"


_TASKS = ("BoyanChain", "Loop", "Dense")


def register() -> None:
    """Registers ``ictd/BoyanChain-v0``, ``ictd/Loop-v0`` and ``ictd/Dense-v0`` with Gymnasium, where they are not yet.

    ``import ictd`` does it, now or as soon as Gymnasium is imported; there is no need to call this.
    """
    registration = importlib.import_module("gymnasium.envs.registration")
    for name in _TASKS:
        if f"ictd/{name}-v0" not in registration.registry:
            registration.register(id=f"ictd/{name}-v0", entry_point=f"ictd.environments:{name}")


class _WhenImported:
    """Registers the tasks when Gymnasium is imported: it finds no module itself, but adds to what is done after that of Gymnasium."""

    module = "gymnasium.envs"

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.module:
            return None
        found = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if finder is not self and hasattr(finder, "find_spec"))
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._add(spec.loader)
        return spec

    def _add(self, loader: Any) -> None:
        execute = loader.exec_module

        def then_register(module: Any) -> None:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            cast(dict[str, Any], vars(loader)).pop("exec_module", None)
            execute(module)
            try:
                register()
            except Exception as error:  # Whatever happens, it is no reason for which Gymnasium could not be imported.
                warnings.warn(f"the tasks of ictd are not known to Gymnasium: {error!r}", RuntimeWarning, stacklevel=2)

        # Of this module's loader alone: the loader stays what it is to everybody else.
        loader.exec_module = then_register


def register_when_imported() -> None:
    """Registers now where Gymnasium is imported, and otherwise as soon as it is."""
    if _WhenImported.module in sys.modules:
        register()
    elif not any(isinstance(finder, _WhenImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenImported())
