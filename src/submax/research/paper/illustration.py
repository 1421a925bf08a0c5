"""The paper's illustration: the policies that follow from the same uniform observations."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.environment import Environment
from submax.core.errors import InputError
from submax.core.numerics import standard_error
from submax.core.policy import Policy
from submax.core.problem import Feedback
from submax.policies.epsilon_greedy import Random
from submax.simulation.experiment import (
    Specification,
    configurations,
    make_environment,
    named_policies,
    policy_of,
)
from submax.simulation.results import (
    CURVE_TABLE,
    FINAL_TABLE,
    SUMMARY,
    Part,
    write_csv,
    write_table,
)

ENVIRONMENTS_AT_ONCE = 500
"""The number of environments that are simulated together, which limits the memory."""

SMALLEST_PROBABILITY = 1e-12
"""A probability below this is zero up to rounding."""


class PolicyPanel(NamedTuple):
    """The ``probabilities`` of one policy and the ``values`` of the actions, both ``[N, actions]``.

    N is the number of environments; the value of an action is its expected reward.
    """

    probabilities: Floats
    values: Floats

    @property
    def expected_reward(self) -> Floats:
        """Σ_a π(a) v(a) in each environment."""
        expected: Floats = np.sum(self.probabilities * self.values, axis=-1)
        return expected

    @property
    def zeroed_actions(self) -> Integers:
        """The number of actions with probability 0 in each environment."""
        zeroed: Integers = np.sum(self.probabilities < SMALLEST_PROBABILITY, axis=-1)
        return zeroed


def illustrate(specification: Specification, directory: Path) -> None:
    """Write the panels of the first environment, and expected rewards in all environments."""
    panels = compute(specification)
    rows = [
        {
            "policy": name,
            "expected_reward": float(panel.expected_reward.mean()),
            "standard_error": standard_error(panel.expected_reward),
            "environments": len(panel.expected_reward),
        }
        for name, panel in panels.items()
    ]
    write_table(directory, CURVE_TABLE, [_first(name, panel) for name, panel in panels.items()])
    write_table(directory, FINAL_TABLE, [_finals(name, panel) for name, panel in panels.items()])
    write_csv(directory / SUMMARY, rows)


def compute(specification: Specification) -> dict[str, PolicyPanel]:
    """The panel of every policy, by name, over all environments."""
    tables = list(configurations(specification))
    if len(tables) != 1:
        raise InputError(
            f"an illustration needs one configuration, and the lists in [environment] and [delay] "
            f"make {len(tables)}: give each key a single value"
        )
    environment = make_environment(tables[0][0])
    policies = {name: policy_of(policy) for name, policy in named_policies(specification).items()}
    chunks = list(_chunks(specification, environment, policies))
    return {
        name: PolicyPanel(
            np.concatenate([chunk[name].probabilities for chunk in chunks]),
            np.concatenate([chunk[name].values for chunk in chunks]),
        )
        for name in policies
    }


def _chunks(
    specification: Specification, environment: Environment[Any], policies: dict[str, Policy[Any]]
) -> Iterator[dict[str, PolicyPanel]]:
    starts = range(0, specification.replicas, ENVIRONMENTS_AT_ONCE)
    streams = np.random.SeedSequence(specification.seed).spawn(len(starts))
    for start, stream in zip(starts, streams, strict=True):
        replicas = min(ENVIRONMENTS_AT_ONCE, specification.replicas - start)
        rng = np.random.default_rng(stream)
        world = environment.reset(replicas, rng)
        feedback = _uniform_log(environment, world, replicas, specification.observations, rng)
        yield {
            name: _panel(environment, world, policy, feedback, rng)
            for name, policy in policies.items()
        }


def _uniform_log(
    environment: Environment[Any],
    world: Any,
    replicas: int,
    observations: int,
    rng: np.random.Generator,
) -> Feedback:
    context = environment.contexts(world, observations, rng)
    state = Random().init(environment.problem, replicas, rng)
    action, log_prob = Random().act(state, context, rng)
    reward = environment.reward(world, context, action, rng)
    return Feedback(context, action, reward, log_prob, np.ones(reward.shape))


def _panel(
    environment: Environment[Any],
    world: Any,
    policy: Policy[Any],
    feedback: Feedback,
    rng: np.random.Generator,
) -> PolicyPanel:
    space, replicas = environment.problem.space, len(feedback.reward)
    state = policy.update(policy.init(environment.problem, replicas, rng), feedback, rng)
    listing = np.broadcast_to(space.listing(), (replicas, space.size, space.slots))
    context = np.zeros((replicas, space.size, environment.problem.context_width))
    return PolicyPanel(
        np.exp(policy.log_prob(state, context, listing)),
        environment.mean_reward(world, context, listing),
    )


def _first(name: str, panel: PolicyPanel) -> Part:
    return {
        "policy": name,
        "action": np.arange(len(panel.values[0])),
        "probability": panel.probabilities[0],
        "value": panel.values[0],
    }


def _finals(name: str, panel: PolicyPanel) -> Part:
    return {
        "policy": name,
        "environment": np.arange(len(panel.values)),
        "expected_reward": panel.expected_reward,
        "zeroed_actions": panel.zeroed_actions,
    }
