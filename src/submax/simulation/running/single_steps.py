"""The fast path of a simulation: single decisions without context, whose reward comes at once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.simulation.running.recording import Recording
from submax.simulation.running.simulated_world import SimulatedWorld

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
    stepper = _definer(order, "stepper")
    if problem.context_width or any(_definer(order, name) < stepper for name in REPLACED):
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
    space, context = world.environment.problem.space, world.contexts(1)
    for _ in range(observations):
        index = stepper.act(rng)
        action = space.action(index[:, None])
        recording.check(action, 1)
        reward, regret = world.play(context, action)
        recording.add(action, reward, regret)
        stepper.learn(index, reward[:, 0], rng)
        advanced(1, 1)


def _definer(order: tuple[type, ...], name: str) -> int:
    """Return the place of the first class in the method resolution order that defines a name."""
    return next(place for place, kind in enumerate(order) if name in vars(kind))
