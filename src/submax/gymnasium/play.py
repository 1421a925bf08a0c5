"""A policy of submax in a Gymnasium environment whose episodes have one step."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import as_whole_number, instance_of
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Continuous, Scale
from submax.core.spaces import Arms, Slots, Space

ANY_NUMBER = Continuous()


class GymnasiumRun(NamedTuple):
    """The contexts ``[n, D]``, actions ``[n, S]`` and rewards ``[n]`` of n decisions."""

    contexts: Floats
    actions: Actions
    rewards: Floats


def play(
    env: Any,
    policy: Policy[Any],
    *,
    observations: int,
    scale: Scale = ANY_NUMBER,
    seed: int = 0,
) -> GymnasiumRun:
    """Let a policy decide in a Gymnasium environment, one step for each decision.

    The observation, flattened, is the context. An episode that goes on after its first step is
    ended by ``reset``: a bandit's decisions do not influence later contexts. If the environment is
    a `BanditEnv`, its episode goes on, because its steps are decisions. ``scale`` is the scale of
    the rewards. A Gymnasium environment does not say which mean reward an action has, so there is
    no regret.
    """
    instance_of("env", env, gymnasium.Env, "gymnasium.make(...)")
    instance_of("policy", policy, Policy, "make_policy('rcp-adaptive')")
    count = as_whole_number("observations", observations, at_least=1)
    problem = problem_of(env, scale)
    rng = np.random.default_rng(seed)
    state = policy.init(problem, 1, rng)
    bandit = hasattr(env.unwrapped, "environment")
    contexts, actions, rewards = [], [], []
    observation, over = None, True
    for decision in range(count):
        if over:
            observation, _ = env.reset(seed=seed if decision == 0 else None)
        context = gymnasium.spaces.flatten(env.observation_space, observation)
        context = np.asarray(context, dtype=np.float64).reshape(1, 1, -1)
        action, log_prob = policy.act(state, context, rng)
        chosen = action[0, 0] if isinstance(problem.space, Slots) else int(action[0, 0, 0])
        observation, reward, terminated, truncated, _ = env.step(chosen)
        over = not bandit or terminated or truncated
        drawn = np.array([[float(reward)]])
        state = policy.record(state, action)
        feedback = Feedback(context, action, drawn, log_prob, np.ones((1, 1)))
        state = policy.update(state, feedback, rng)
        contexts.append(context[0, 0])
        actions.append(action[0, 0])
        rewards.append(float(reward))
    return GymnasiumRun(np.array(contexts), np.array(actions), np.array(rewards))


def problem_of(env: Any, scale: Scale) -> Problem:
    """Return the problem of a Gymnasium environment: its actions, and the width of its contexts."""
    width = gymnasium.spaces.flatdim(env.observation_space)
    return Problem(_space_of(env.action_space), width, scale)


def _space_of(space: Any) -> Space:
    if isinstance(space, gymnasium.spaces.Discrete) and space.start == 0:
        return Arms(int(space.n))
    if isinstance(space, gymnasium.spaces.MultiDiscrete) and not np.any(space.start):
        return Slots(tuple(int(size) for size in space.nvec.ravel()))
    raise InputError(
        f"the actions of the environment must be Discrete or MultiDiscrete and begin at 0, not "
        f"{space}: wrap the environment with a discrete action space"
    )
