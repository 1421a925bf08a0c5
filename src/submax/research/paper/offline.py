"""Policies learned from uniform logs, with off-policy estimates beside their true values."""

import json
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from submax.core.arrays import Floats
from submax.core.environment import Environment
from submax.environments import ENVIRONMENTS
from submax.environments.tables import Classification
from submax.evaluation.comparison import compare
from submax.evaluation.log import Log
from submax.evaluation.policies import learn_one
from submax.schema.trained_policy import TrainedPolicy
from submax.simulation.experiment import Cell
from submax.simulation.results import ESTIMATES, SUMMARY, write_csv
from submax.simulation.runner import seed_of

Row: TypeAlias = dict[str, Any]

LEVEL = 0.95
"""The level of the confidence intervals whose coverage is reported."""
ROUNDING = 1e-12
"""How far an end of an interval may be from a true value that it equals."""
CONTEXTS = 20_000
"""The number of contexts over which the true value of a policy is averaged if the contexts of an
environment cannot be listed."""


def write_offline(directory: Path, finished: Sequence[tuple[Cell, list[Row]]]) -> None:
    """Write every estimate beside the truth, and a summary: bias, error and coverage of each."""
    rows = [row for _, found in finished for row in found]
    write_csv(directory / ESTIMATES, rows)
    write_csv(directory / SUMMARY, list(_summary(rows)))


def estimate_cell(cell: Cell) -> list[Row]:
    """Learn one policy from a new log for each replica, and return all off-policy estimates."""
    environment = ENVIRONMENTS.build(cell.environment, {})
    return [row for replica in range(cell.replicas) for row in _replica(cell, environment, replica)]


def _replica(cell: Cell, environment: Environment[Any], replica: int) -> Iterator[Row]:
    """Learn a policy from the first half of a log, and estimate its value by the second half."""
    rng = np.random.default_rng([*seed_of(cell), replica])
    world = environment.reset(1, rng)
    first, second = uniform_log(environment, world, cell.observations, rng).split(0.5)
    policy: Any = cell.policy
    if not isinstance(policy, str):
        policy = {key: value for key, value in policy.items() if key != "name"}
    learned = learn_one(first, policy, seed=cell.seed + replica, keep_rows=0)
    truth = true_value(environment, world, learned, rng)
    found = compare(second, {cell.policy_name: learned}, level=LEVEL, trained_elsewhere=True)
    for one in found.estimates[1:]:
        yield {
            **cell.labels,
            "policy": cell.policy_name,
            "estimator": one.estimator,
            "replica": replica,
            "logged": found.estimates[0].value,
            "truth": truth,
            "value": one.value,
            "low": one.interval.low,
            "high": one.interval.high,
            "warnings": len(one.cautions),
        }


def uniform_log(
    environment: Environment[Any], world: Any, observations: int, rng: np.random.Generator
) -> Log:
    """A log of decisions by the uniform policy."""
    problem = environment.problem
    context = environment.contexts(world, observations, rng)
    action = problem.space.uniform((1, observations), rng)
    reward = environment.reward(world, context, action, rng)
    names = [[str(choice) for choice in range(size)] for size in problem.space.choices]
    slots = {f"slot{slot}": one for slot, one in enumerate(names)}
    return Log.read(
        {
            "action": action[0, :, 0] if len(names) == 1 else action[0],
            "reward": reward[0],
            "propensity": np.full(observations, np.exp(-problem.space.log_measure)),
            "context": context[0],
        },
        actions=names[0] if len(names) == 1 else slots,
        rewards=problem.scale,
    )


def true_value(
    environment: Environment[Any], world: Any, learned: TrainedPolicy, rng: np.random.Generator
) -> float:
    """The policy's expected reward E[Σ_a π(a | x) E[r | x, a]].

    The mean is over all rows of a data set, or over `CONTEXTS` contexts of another environment.
    """
    if isinstance(environment, Classification):
        context: Floats = environment.rows.features[None]
    else:
        context = environment.contexts(world, CONTEXTS, rng)
    table = learned.probabilities(context[0].astype(np.float32))
    value = np.zeros(context.shape[1])
    for number, action in enumerate(environment.problem.space.listing()):
        actions = np.broadcast_to(action, (1, context.shape[1], len(action)))
        value += table[:, number] * environment.mean_reward(world, context, actions)[0]
    return float(value.mean())


def _summary(rows: Sequence[Row]) -> Iterator[Row]:
    """One row for each configuration, policy and estimator: means over the replicas."""
    groups: dict[str, list[Row]] = {}
    means = {"logged": "logged", "truth": "truth", "estimate": "value"}
    for row in rows:
        labels = dict(takewhile(lambda item: item[0] != "replica", row.items()))
        groups.setdefault(json.dumps(labels), []).append(row)
    for written, group in groups.items():
        error = np.array([row["value"] - row["truth"] for row in group])
        # Where every reward is 1, the ends differ from it by rounding.
        covered = [row["low"] - ROUNDING <= row["truth"] <= row["high"] + ROUNDING for row in group]
        yield {
            **json.loads(written),
            "replicas": len(group),
            **{name: float(np.mean([row[of] for row in group])) for name, of in means.items()},
            "bias": float(error.mean()),
            "root_mean_squared_error": float(np.sqrt((error**2).mean())),
            "coverage": float(np.mean(covered)),
        }
