"""An environment of submax as a Gymnasium environment."""

from typing import Any

import gymnasium
import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import instance_of, whole_number
from submax.core.environment import Environment
from submax.core.spaces import Arms, Slots, Space


class BanditEnv(gymnasium.Env[Floats, Any]):
    """One replica of an environment: an observation is a context, a step is a decision.

    ``reset`` draws a new hidden truth. An episode has ``horizon`` steps and is then truncated.
    Every step returns the context of the next decision, the reward, and in ``info`` the
    ``mean_reward``, the ``best_reward`` and the ``regret`` of the decision. A choice of arms is a
    ``Discrete`` action, slots are ``MultiDiscrete``, and real-valued actions a ``Box``.

    >>> from submax import Contextual
    >>> env = BanditEnv(Contextual(arms=3, dimension=2), horizon=10)
    >>> observation, info = env.reset(seed=1)
    >>> observation.shape, env.action_space
    ((2,), Discrete(3))
    """

    def __init__(self, environment: Environment[Any], horizon: int = 1000) -> None:
        instance_of("environment", environment, Environment, "Bernoulli(10)")
        whole_number("horizon", horizon, at_least=1)
        self.environment = environment
        most = environment.most_decisions
        self.horizon = horizon if most is None else min(horizon, most)
        problem = environment.problem
        shape = (problem.context_width,)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
        self.action_space = _action_space(problem.space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Draw a new truth and return the first context."""
        super().reset(seed=seed, options=options)
        self._world = self.environment.reset(1, self.np_random)
        self._taken = 0
        return self._next_context(), {}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Take a decision in the present context; return the next context and the reward."""
        space = self.environment.problem.space
        chosen: Actions = np.asarray(action, dtype=space.dtype).reshape(1, 1, space.slots)
        self.environment.problem.check_action(chosen)
        reward, mean = self.environment.outcome(self._world, self._context, chosen, self.np_random)
        best = self.environment.best_reward(self._world, self._context)
        regret = self.environment.regret(self._world, self._context, chosen)
        self._world = self.environment.advance(self._world, 1, self.np_random)
        self._taken += 1
        truncated = self._taken >= self.horizon
        info = {
            "mean_reward": float(mean[0, 0]),
            "best_reward": float(best[0, 0]),
            "regret": float(regret[0, 0]),
        }
        # After the last decision there need not be a further context.
        context = self._context[0, 0] if truncated else self._next_context()
        return context, float(reward[0, 0]), False, truncated, info

    def _next_context(self) -> Floats:
        self._context = self.environment.contexts(self._world, 1, self.np_random)
        context: Floats = self._context[0, 0]
        return context


def _action_space(space: Space) -> Any:
    if isinstance(space, Arms):
        return gymnasium.spaces.Discrete(space.count)
    if isinstance(space, Slots):
        return gymnasium.spaces.MultiDiscrete(list(space.sizes))
    unscaled = [space.unscaled(np.full(space.slots, end)) for end in (0.0, 1.0)]
    low, high = (np.asarray(end, dtype=np.float64) for end in unscaled)
    choices = len(space.choices)
    low[:choices], high[:choices] = 0.0, np.array(space.choices, dtype=np.float64) - 1
    return gymnasium.spaces.Box(low, high, dtype=np.float64)
