"""The fast path of a simulation: single decisions without context, whose reward comes at once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.core.contracts.success_draws import SuccessDraws
from submax.simulation.running.recording import SINGLES_TOGETHER, Recording
from submax.simulation.running.simulated_world import SimulatedWorld, definer

NUMBERS_TOGETHER = 2**15
"""Rewards of single decisions are drawn in blocks of about this many numbers, if they are known to
be 0 and 1: few enough for the caches of a processor, and enough to look ahead."""
REPLACED = ("init", "act", "update", "record", "probabilities")
"""The methods of a policy that a stepper replaces."""


def stepper_of(
    policy: Policy[Any], problem: Problem, replicas: int, rng: np.random.Generator
) -> Stepper | None:
    """Return the stepper of a policy; None if it has none, or if there is a context.

    A subclass that overrides one of the methods that a stepper replaces, but not ``stepper``,
    decides differently from the inherited stepper, which is then not used.
    """
    order = type(policy).__mro__
    stepper = definer(order, "stepper")
    if problem.context_width or any(definer(order, name) < stepper for name in REPLACED):
        return None
    return policy.stepper(problem, replicas, rng)


def take_single_steps(
    stepper: Stepper,
    world: SimulatedWorld,
    recording: Recording,
    observations: int,
    rng: np.random.Generator,
    advanced: Callable[[int, int], None],
) -> None:
    """Take ``observations`` single decisions in every replica, and learn from each of them."""
    successes = world.success_probabilities()
    if successes is not None:
        together = max(SINGLES_TOGETHER, NUMBERS_TOGETHER // world.replicas)
        for begin in range(0, observations, together):
            count = min(together, observations - begin)
            _take_successes(stepper, world, successes, recording, count, rng)
            advanced(count, count)
        return
    space, context = world.environment.problem.space, world.contexts(1)
    for _ in range(observations):
        index = stepper.act(rng)
        action = space.action(index[:, None])
        recording.check(action, 1)
        reward, regret = world.play(context, action)
        recording.add(action, reward, regret)
        stepper.learn(index, reward[:, 0], rng)
        advanced(1, 1)


def _take_successes(
    stepper: Stepper,
    world: SimulatedWorld,
    successes: Floats,
    recording: Recording,
    count: int,
    rng: np.random.Generator,
) -> None:
    """Take some single decisions whose rewards are 1 with the probabilities ``successes [R, M]``.

    The uniform numbers of all of them are drawn at once; they are those of single draws.
    """
    draws = SuccessDraws(successes, world.random.reward.random((count, world.replicas)))
    index, reward = stepper.take(draws, rng)
    regret = successes.max(axis=1, keepdims=True) - draws.means(index).T
    recording.add_singles(world.environment.problem.space.action(index.T), reward.T, regret)
