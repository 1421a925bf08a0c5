"""Environments of submax as Gymnasium environments, and policies in Gymnasium environments."""

from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import as_whole_number, instance_of, whole_number
from submax.core.environment import Environment
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.core.policy import Policy
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Continuous, Scale
from submax.core.spaces import Arms, Slots, Space

require_extra("gymnasium", "submax.integrations.gymnasium", "gymnasium")

import gymnasium  # noqa: E402 - the package is checked first

__all__ = ["BanditEnv", "GymnasiumRun", "play"]


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
        return self._context[0, 0]


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


ANY_NUMBER = Continuous()


class GymnasiumRun(NamedTuple):
    """The contexts ``[n, D]``, actions ``[n, S]`` and rewards ``[n]`` of n decisions."""

    contexts: Floats
    actions: Actions
    rewards: Floats


def play(
    env: Any, policy: Policy[Any], *, observations: int, scale: Scale = ANY_NUMBER, seed: int = 0
) -> GymnasiumRun:
    """Let a policy decide in a Gymnasium environment, one step for each decision.

    The observation, flattened, is the context. Episodes must have one step, because a bandit's
    decisions do not influence later contexts; an episode that goes on is refused. Only the steps
    of a `BanditEnv` are decisions of their own, so its episodes may be long. ``scale`` is the
    scale of the rewards. A Gymnasium environment does not say which mean reward an action has, so
    there is no regret.
    """
    instance_of("env", env, gymnasium.Env, "gymnasium.make(...)")
    instance_of("policy", policy, Policy, "make_policy('rcp-adaptive')")
    count = as_whole_number("observations", observations, at_least=1)
    width = gymnasium.spaces.flatdim(env.observation_space)
    problem = Problem(_space_of(env.action_space), width, scale)
    rng = np.random.default_rng(seed)
    state = policy.init(problem, 1, rng)
    bandit = hasattr(env.unwrapped, "environment")
    rows = []
    observation, over = None, True
    for decision in range(count):
        if over:
            observation, _ = env.reset(seed=seed if decision == 0 else None)
        context = gymnasium.spaces.flatten(env.observation_space, observation)
        context = np.asarray(context, dtype=np.float64).reshape(1, 1, -1)
        action, log_prob = policy.act(state, context, rng)
        chosen = action[0, 0] if isinstance(problem.space, Slots) else int(action[0, 0, 0])
        observation, reward, terminated, truncated, _ = env.step(chosen)
        over = terminated or truncated
        if not over and not bandit:
            raise InputError(
                f"an episode of {env} has more than one step: give an environment whose "
                "episodes have one step, such as gymnasium.wrappers.TimeLimit(env, 1) if "
                "only the first step matters",
                parameter="env",
            )
        drawn = np.array([[float(reward)]])
        state = policy.record(state, action)
        feedback = Feedback(context, action, drawn, log_prob, np.ones((1, 1)))
        state = policy.update(state, feedback, rng)
        rows.append((context[0, 0], action[0, 0], drawn[0, 0]))
    return GymnasiumRun(*map(np.array, zip(*rows, strict=True)))


def _space_of(space: Any) -> Space:
    if isinstance(space, gymnasium.spaces.Discrete) and space.start == 0:
        return Arms(int(space.n))
    if isinstance(space, gymnasium.spaces.MultiDiscrete) and not np.any(space.start):
        return Slots(tuple(int(size) for size in space.nvec.ravel()))
    raise InputError(
        f"the actions of the environment must be Discrete or MultiDiscrete and begin at 0, not "
        f"{space}: wrap the environment with a discrete action space"
    )
