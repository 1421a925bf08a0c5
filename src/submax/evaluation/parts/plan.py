"""What a process needs to evaluate a unit of a log, and the sums that it returns."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.logs.log import Log
from submax.evaluation.models.reward_model import FOLDS
from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.parts.log_sums import LogSums
from submax.evaluation.parts.parted_columns import PartedColumns
from submax.evaluation.parts.policy_sums import Blocks, PolicySums
from submax.evaluation.parts.row_hash import uniform_of
from submax.evaluation.parts.unit import Unit
from submax.evaluation.report.estimate import LOGGING_POLICY
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence
from submax.evaluation.report.evidence.policy_evidence import PolicyEvidence

SPLIT_SEED, FOLD_SEED = 1, 2
"""Added to the seed, so that splits and folds are independent of the sample."""


TUNED = ("threshold", "shrinkage")
"""Parameters of estimators that are chosen from the data if they are None."""


class Split(NamedTuple):
    """Which rows policies learn from: the first ``boundary`` ones, or a random ``share``."""

    boundary: int
    share: float
    random: bool
    seed: int

    def evaluated(self, number: Integers) -> Booleans:
        """Return which rows, by their numbers in the log, are evaluated."""
        if self.random:
            return uniform_of(number, self.seed + SPLIT_SEED) >= self.share
        return number >= self.boundary


class Plan(NamedTuple):
    """The policies and estimators of an evaluation, and all that was fitted to the sample.

    ``logged`` is the evidence of the evaluated rows of the sample, of which ``numbers`` are the
    numbers in the log and ``folds`` the folds of the reward models. ``bounds`` are the lowest and
    highest reward, ``usual`` the most frequent ones, and ``blocks`` is the number of rows of a
    block of the bootstrap; 0 without one.
    """

    reading: Mapping[str, Any]
    columns: list[str]
    split: Split
    logged: LoggedEvidence
    numbers: Integers
    folds: NDArray[np.int8]
    untaken: list[Booleans]
    targets: dict[str, Any]
    estimators: dict[str, dict[str, OffPolicyEstimator]]
    baseline: str
    bounds: tuple[float, float]
    usual: Floats
    centre: float
    block_rows: int
    blocks: int

    def fold_of(self, number: Integers) -> NDArray[np.int8]:
        """Return the model that predicts each row: for rows of the sample one fitted without it."""
        place = np.minimum(np.searchsorted(self.numbers, number), len(self.numbers) - 1)
        drawn = (uniform_of(number, FOLD_SEED) * FOLDS).astype(np.int8)
        found: NDArray[np.int8] = np.where(
            self.numbers[place] == number, self.folds[place], drawn
        ).astype(np.int8)
        return found


class UnitSums(NamedTuple):
    """The sums over the evaluated rows of a unit, of the log and of each policy."""

    log: LogSums
    policies: dict[str, PolicySums]

    def __add__(self, other: "UnitSums") -> "UnitSums":  # type: ignore[override]  # not of tuples
        policies = {name: one + other.policies[name] for name, one in self.policies.items()}
        return UnitSums(self.log + other.log, policies)


def evaluate_unit(unit: Unit, first: int, plan: Plan) -> UnitSums | None:
    """Return the sums over the evaluated rows of a unit; None if it has none.

    ``first`` is the number of the first row of the unit in the log.
    """
    total: UnitSums | None = None
    for log, _ in unit.logs(plan.reading, plan.columns):
        number = np.arange(first, first + len(log))
        first += len(log)
        chosen = plan.split.evaluated(number)
        if chosen.any():
            found = _of_part(log.rows(chosen), number[chosen], plan)
            total = found if total is None else total + found
    return total


def _of_part(log: Log, number: Integers, plan: Plan) -> UnitSums:
    part = plan.logged.of_part(log, number, plan.fold_of(number), plan.untaken)
    block = None
    if plan.block_rows:
        block = (number - plan.split.boundary) // plan.block_rows
    blocks = Blocks(block, plan.blocks)
    about_log = _bounded(part.about_logging_policy(), plan)
    mean = {"mean": make_off_policy("ips").terms(about_log.evidence)}
    rest = (plan.centre, blocks, plan.usual)
    found = {LOGGING_POLICY: PolicySums.of(about_log, mean, mean, *rest)}
    targets = {
        name: one.in_rows(log, number) if isinstance(one, PartedColumns) else one
        for name, one in plan.targets.items()
    }
    labels = next(iter(plan.estimators.values()))
    base: dict[str, Terms] = dict.fromkeys(labels, mean["mean"])
    if plan.baseline != LOGGING_POLICY:
        base = _terms(plan, plan.baseline, _bounded(part.about(targets[plan.baseline]), plan))
    for name, target in targets.items():
        about = _bounded(part.about(target), plan)
        terms = base if name == plan.baseline else _terms(plan, name, about)
        found[name] = PolicySums.of(about, terms, base, *rest)
    return UnitSums(LogSums.of(log, plan.centre), found)


def _terms(plan: Plan, name: str, about: PolicyEvidence) -> dict[str, Terms]:
    estimators = plan.estimators[name].items()
    return {label: one.terms(about.evidence) for label, one in estimators}


def _bounded(about: PolicyEvidence, plan: Plan) -> PolicyEvidence:
    """Return the evidence with the bounds of the rewards of all rows, not only of this part."""
    return about._replace(evidence=about.evidence._replace(bounds=plan.bounds))
