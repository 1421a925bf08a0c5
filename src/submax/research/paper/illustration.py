"""The paper's illustration: the policies that follow from the same uniform observations."""

from pathlib import Path
from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError
from submax.core.numerics import standard_error
from submax.core.problem import Feedback
from submax.environments import ENVIRONMENTS
from submax.policies import make_policy
from submax.policies.epsilon_greedy import Random
from submax.simulation.experiment import Specification, configurations, named_policies
from submax.simulation.results import CURVE_TABLE, FINAL_TABLE, SUMMARY, write_csv, write_table

ENVIRONMENTS_AT_ONCE = 500
"""The number of environments that are simulated together, which limits the memory."""

SMALLEST_PROBABILITY = 1e-12
"""A probability below this is zero up to rounding."""


def illustrate(specification: Specification, directory: Path) -> None:
    """Write the panels of the first environment, and expected rewards in all environments."""
    first, finals, rows = (list[dict[str, Any]]() for _ in range(3))
    panels, values = compute(specification)
    count, actions = values.shape
    for name, panel in panels.items():
        # Σ_a π(a) v(a) in each environment.
        earned = np.sum(panel * values, axis=-1)
        columns = {"probability": panel[0], "value": values[0]}
        first.append({"policy": name, "action": np.arange(actions), **columns})
        zeroed = np.sum(panel < SMALLEST_PROBABILITY, axis=-1)
        numbers = {"expected_reward": earned, "zeroed_actions": zeroed}
        finals.append({"policy": name, "environment": np.arange(count), **numbers})
        mean, error = float(earned.mean()), standard_error(earned)
        summary = {"expected_reward": mean, "standard_error": error, "environments": count}
        rows.append({"policy": name, **summary})
    write_table(directory, CURVE_TABLE, first)
    write_table(directory, FINAL_TABLE, finals)
    write_csv(directory / SUMMARY, rows)


def compute(specification: Specification) -> tuple[dict[str, Floats], Floats]:
    """The probabilities of every policy, by name, and the values of the actions: ``[N, actions]``.

    N is the number of environments; the value of an action is its expected reward.
    """
    tables = list(configurations(specification))
    if len(tables) != 1:
        raise InputError(
            f"an illustration needs one configuration, and the lists in [environment] and [delay] "
            f"make {len(tables)}: give each key a single value"
        )
    environment = ENVIRONMENTS.build(tables[0][0], {})
    policies = {name: make_policy(policy) for name, policy in named_policies(specification).items()}
    parts: dict[str, list[Floats]] = {name: [] for name in policies}
    values = list[Floats]()
    starts = range(0, specification.replicas, ENVIRONMENTS_AT_ONCE)
    streams = np.random.SeedSequence(specification.seed).spawn(len(starts))
    for start, stream in zip(starts, streams, strict=True):
        replicas = min(ENVIRONMENTS_AT_ONCE, specification.replicas - start)
        rng = np.random.default_rng(stream)
        world = environment.reset(replicas, rng)
        context = environment.contexts(world, specification.observations, rng)
        state = Random().init(environment.problem, replicas, rng)
        action, log_prob = Random().act(state, context, rng)
        reward = environment.reward(world, context, action, rng)
        feedback = Feedback(context, action, reward, log_prob, np.ones(reward.shape))
        space = environment.problem.space
        listing = np.broadcast_to(space.listing(), (replicas, space.size, space.slots))
        places = np.zeros((replicas, space.size, environment.problem.context_width))
        values.append(environment.mean_reward(world, places, listing))
        for name, policy in policies.items():
            state = policy.update(policy.init(environment.problem, replicas, rng), feedback, rng)
            parts[name].append(np.exp(policy.log_prob(state, places, listing)))
    panels = {name: np.concatenate(found) for name, found in parts.items()}
    return panels, np.concatenate(values)
