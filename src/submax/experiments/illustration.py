"""The paper's illustration: what each policy makes of the same uniform observations."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from submax.core.arrays import Floats
from submax.core.contracts.environment import Environment
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError
from submax.core.numerics.standard_error import standard_error
from submax.experiments.cells import configurations, make_environment, named_policies, policy_of
from submax.experiments.directory import write_csv
from submax.experiments.results import RESULTS, SUMMARY, write_parquet
from submax.experiments.specification import Specification
from submax.policies.classic.random import Random

CHUNK = 500
"""So many environments at a time keep the memory small."""


class Panel(NamedTuple):
    """What one policy does: ``probabilities`` and ``values``, both ``[environments, actions]``."""

    probabilities: Floats
    values: Floats

    @property
    def expected_reward(self) -> Floats:
        """Σ_a π(a) v(a) in each environment."""
        expected: Floats = np.sum(self.probabilities * self.values, axis=-1)
        return expected


def illustrate(specification: Specification, directory: Path) -> None:
    """Average the expected reward of every policy over environments; keep the first to draw."""
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
    write_parquet(directory / RESULTS, [_first(name, panel) for name, panel in panels.items()])
    write_csv(directory / SUMMARY, rows)


def compute(specification: Specification) -> dict[str, Panel]:
    """The panel of every policy, over all environments."""
    tables = list(configurations(specification))
    if len(tables) != 1:
        raise InputError(f"an illustration has one environment, not {len(tables)}")
    environment = make_environment(tables[0][0])
    policies = {name: policy_of(policy) for name, policy in named_policies(specification)}
    chunks = list(_chunks(specification, environment, policies))
    return {
        name: Panel(
            np.concatenate([chunk[name].probabilities for chunk in chunks]),
            np.concatenate([chunk[name].values for chunk in chunks]),
        )
        for name in policies
    }


def _chunks(
    specification: Specification, environment: Environment[Any], policies: dict[str, Policy[Any]]
) -> Iterator[dict[str, Panel]]:
    starts = range(0, specification.replicas, CHUNK)
    streams = np.random.SeedSequence(specification.seed).spawn(len(starts))
    for start, stream in zip(starts, streams, strict=True):
        replicas = min(CHUNK, specification.replicas - start)
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
) -> Panel:
    space, replicas = environment.problem.space, len(feedback.reward)
    state = policy.update(policy.init(environment.problem, replicas, rng), feedback, rng)
    listing = np.broadcast_to(space.listing(), (replicas, space.size, space.slots))
    context = np.zeros((replicas, space.size, environment.problem.context_width))
    return Panel(
        np.exp(policy.log_prob(state, context, listing)),
        environment.mean_reward(world, context, listing),
    )


def _first(name: str, panel: Panel) -> pa.Table:
    actions = len(panel.values[0])
    return pa.table(
        {
            "policy": pa.repeat(name, actions),
            "action": np.arange(actions),
            "probability": panel.probabilities[0],
            "value": panel.values[0],
        }
    )
