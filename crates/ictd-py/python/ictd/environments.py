"""The library's random tasks as Gymnasium environments. Importing this module imports Gymnasium; ``gymnasium.make`` does it by itself.

They are reward processes: nobody decides anything, and the one action, 0, lets time go on. Values that a Transformer, an estimator or a
return says can be compared with ``env.unwrapped.task.values``, which are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ictd._checks import whole
from ictd.errors import InputError

if TYPE_CHECKING:
    # As much of Gymnasium as is used here, so that types can be checked without it.
    class Env:
        np_random: np.random.Generator
        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]: ...

    class spaces:
        Box: ClassVar[Any]
        Discrete: ClassVar[Any]
else:
    from gymnasium import Env, spaces

__all__ = ["BoyanChain", "Dense", "Loop", "TaskEnvironment"]

Observation = npt.NDArray[np.float64] | np.int64


class TaskEnvironment(Env):
    """A random task of one of the library's families.

    Arguments, all by keyword:
        observation: ``"features"``, the vector x(s), or ``"state"``, the number of the state.
        task_seed, task_index: which task: the one of that index in the family's sequence of that seed. It stays the same for the life of
            the environment; ``reset(seed=…)`` seeds what happens in it.
        states, features, gamma: sizes and discount, the family's usual ones where they are not given.
        horizon: after how many steps an episode is truncated; ``None`` for never. The tasks have no terminal states.
        Any other keyword is one of :class:`ictd.Family`: ``representable``, ``threshold``, …

    ``task`` is the task: ``P``, ``rewards``, ``gamma``, ``initial``, ``features``, ``values``. ``info["state"]`` is the number of the
    state, whatever is observed. The reward of a step is r(s) of the state that is left.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    kind: ClassVar[str]

    def __init__(
        self,
        *,
        observation: str = "features",
        task_seed: int = 0,
        task_index: int = 0,
        states: int | None = None,
        features: int | None = None,
        gamma: float | None = None,
        horizon: int | None = 100,
        render_mode: None = None,
        **family: Any,
    ) -> None:
        if observation not in ("features", "state"):
            raise InputError(f"observation is {observation!r}, expected 'features' or 'state'")
        if render_mode is not None:
            raise InputError(f"render_mode is {render_mode!r}, expected None: there is nothing to see")
        self.observation, self.render_mode = observation, None
        self.horizon = None if horizon is None else whole("horizon", horizon, 1)
        from ictd.tasks import Family

        sizes: dict[str, Any] = {"states": states, "features": features, "gamma": gamma}
        sizes = {name: size for name, size in sizes.items() if size is not None}
        self.task: Any = Family(self.kind, **sizes, **family).draw(whole("task_seed", task_seed), whole("task_index", task_index))
        self._features = np.array(self.task.features, dtype=np.float64)
        self._rewards = np.array(self.task.rewards, dtype=np.float64)
        self._start: npt.NDArray[np.float64] = np.cumsum(np.asarray(self.task.initial, dtype=np.float64))
        self._moves: npt.NDArray[np.float64] = np.cumsum(np.asarray(self.task.P, dtype=np.float64), axis=1)
        # The bounds of a family, not of a task, so that tasks of different seeds go into one vector of environments.
        bound = max(1.0, float(np.abs(self._features).max()))
        number, dim = self._features.shape
        self.observation_space = (
            spaces.Box(-bound, bound, (dim,), np.float64) if observation == "features" else spaces.Discrete(number)
        )
        self.action_space = spaces.Discrete(1)
        self._state: int | None = None
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode in a state drawn from the task's initial distribution. There are no options."""
        super().reset(seed=seed)
        self._state, self._steps = self._drawn(self._start), 0
        return self._seen(self._state)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Leaves the state: reward r(s), next state from P. The action says nothing."""
        if self._state is None:
            raise InputError("step was called before reset")
        reward = float(self._rewards[self._state])
        self._state = self._drawn(self._moves[self._state])
        self._steps += 1
        observation, info = self._seen(self._state)
        return observation, reward, False, self.horizon is not None and self._steps >= self.horizon, info

    def _drawn(self, sums: npt.NDArray[np.float64]) -> int:
        # The sums end at 1 up to rounding, and a draw must not be beyond the last state.
        drawn = self.np_random.random() * float(sums[-1])
        return min(int(np.searchsorted(sums, drawn, side="right")), len(sums) - 1)

    def _seen(self, state: int) -> tuple[Observation, dict[str, Any]]:
        observation = self._features[state].copy() if self.observation == "features" else np.int64(state)
        return observation, {"state": state}


class BoyanChain(TaskEnvironment):
    """Randomised Boyan chain (the paper's Algorithm 2): the tasks on which the paper trains.

    ## Description
    A chain that moves one or two states ahead and restarts at random from its end.

    ## States
    0, …, m - 1; m is 64 unless ``states`` says otherwise, at least 3.

    ## Transitions
    From i ≤ m - 3 to i + 1 with probability ε_i and to i + 2 with 1 - ε_i, ε_i ~ U(0, 1); from m - 2 to m - 1; from m - 1 to every state
    with probabilities z / Σz, z ~ U(0, 1)^m.

    ## Rewards
    r = (I - γP) v with v(s) = ⟨w, x(s)⟩, w ~ U(-1, 1)^d; with ``representable=False`` r ~ U(-1, 1)^m.

    ## Features
    x(s) ~ U(-1, 1)^d; d is 4 unless ``features`` says otherwise.

    ## Start
    p₀ ∝ U(0, 1)^m.

    ## Stationary law
    Positive everywhere.

    ## Arguments
    See :class:`TaskEnvironment`.

    ## References
    J. Boyan, "Least-squares temporal difference learning", 1999.

    ## Version history
    v0: the library's draws of version 1.
    """

    kind = "boyan"


class Loop(TaskEnvironment):
    """Random graph around a directed loop, the tasks of arXiv 2405.13861 and of the paper's Figure 1.

    ## Description
    A loop through all states with random shortcuts.

    ## States
    0, …, m - 1; m is 10 unless ``states`` says otherwise, at least 3.

    ## Transitions
    Edge i → i + 1 (mod m) always, i → i never, every other with probability 1 - ``threshold`` (0.5); weights U(0.01, 0.99), rows normalised.

    ## Rewards
    r = (I - γP) v with v(s) = ⟨w, x(s)⟩, w ~ N(0, I); with ``representable=False`` r ~ U(-1, 1)^m.

    ## Features
    x(s) ~ U(-1, 1)^d; d is 5 unless ``features`` says otherwise.

    ## Start
    p₀ ∝ U(0.01, 0.99)^m.

    ## Stationary law
    Positive everywhere, because the loop visits every state.

    ## Arguments
    See :class:`TaskEnvironment`.

    ## References
    arXiv 2405.13861.

    ## Version history
    v0: the library's draws of version 1.
    """

    kind = "loop"


class Dense(TaskEnvironment):
    """Every state reaches every state in one step: the simplest ergodic family.

    ## Description
    No structure and fast mixing.

    ## States
    0, …, m - 1; m is 10 unless ``states`` says otherwise.

    ## Transitions
    Rows ∝ U(0, 1)^m.

    ## Rewards
    r = (I - γP) v with v(s) = ⟨w, x(s)⟩, w ~ U(-1, 1)^d; with ``representable=False`` r ~ U(-1, 1)^m.

    ## Features
    x(s) ~ U(-1, 1)^d; d is 4 unless ``features`` says otherwise.

    ## Start
    p₀ ∝ U(0, 1)^m.

    ## Stationary law
    Positive everywhere, close to uniform.

    ## Arguments
    See :class:`TaskEnvironment`.

    ## References
    None.

    ## Version history
    v0: the library's draws of version 1.
    """

    kind = "dense"
