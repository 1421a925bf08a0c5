"""Compares policies on a log that is read in parts."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError, one_line
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.intervals.bootstrap import BLOCKS
from submax.evaluation.logs.log import By
from submax.evaluation.logs.splitting import check_split
from submax.evaluation.models.reward_model import folds_of
from submax.evaluation.parts.parted_columns import PartedColumns
from submax.evaluation.parts.parted_log import FEWEST_PARALLEL, PartedLog, executed
from submax.evaluation.parts.parted_results import PartedComparison, PartedResults
from submax.evaluation.parts.plan import TUNED, Plan, Split, UnitSums, evaluate_unit
from submax.evaluation.parts.scan import UnitScan
from submax.evaluation.report.comparisons.comparison_options import ComparisonOptions
from submax.evaluation.report.estimator_choice import applicable_estimators
from submax.evaluation.report.estimator_set import EstimatorSet
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence
from submax.evaluation.report.learned_targets import learned_target, learns

MOST_USUAL = 1000
"""Different rewards, the most frequent ones of the sample, whose weights are added up."""


def compare_parts(
    log: PartedLog,
    candidates: Mapping[str, Any],
    options: ComparisonOptions,
    baseline: str,
    together: int,
) -> PartedComparison:
    """Return what policies would have earned, from sums over the parts of a log.

    Policies learn, and models of rewards and thresholds are fitted, on a random sample of up to
    524,288 rows, which is divided as the log is; all other numbers are those of all evaluated rows.
    """
    chosen, seed, interval = options.estimators, options.seed, options.interval
    split = _split(log, candidates, options.share, options.by, seed)
    _check(log, chosen, split, any(learns(one) for one in candidates.values()))
    part = split.evaluated(log.numbers)
    rest = log.sample.rows(part)
    logged = LoggedEvidence(rest, seed, options.reward_model, log.numbers[part])
    given = candidates.items()
    targets = {name: learned_target(one, log.sample, ~part, seed) for name, one in given}
    usual = applicable_estimators(rest).items()
    estimators = chosen or {name: one for name, one in usual if one.adds_up}
    scans = log.scans_from(split.boundary)
    plan = _plan(log, split, logged, targets, estimators, scans, interval, baseline)
    settings = options.settings(candidates, estimators, logged.model_choice.name, baseline)
    estimator_set = EstimatorSet(estimators, interval, options.level, seed, together)
    found = PartedResults(log, plan, _summed(log, plan), estimator_set)
    return found.compared(candidates, {**settings, "read": "in parts"})


def _check(
    log: PartedLog, chosen: Mapping[str, OffPolicyEstimator], split: Split, learning: bool
) -> None:
    """Refuse what sums over parts cannot evaluate."""
    slots = len(log.schema.menu.slots)
    if slots != 1:
        raise InputError(
            f"this log has {slots} slots, and cannot be read in parts; plain actions are allowed: "
            "read it whole (--read whole, Log.read)"
        )
    for label, one in chosen.items():
        if not one.adds_up:
            raise InputError(
                f"the estimator {label} needs the log in memory; the others are allowed for a log "
                "that is read in parts: leave the estimator out"
            )
    part = split.evaluated(log.numbers)
    if not part.any() or (learning and part.all()):
        raise InputError(
            f"the share to learn from is {split.share}, so that no row of the sample is "
            f"{'learned from' if part.any() else 'evaluated'}; a share of which both have rows is "
            "allowed: give 0.5"
        )


def _summed(log: PartedLog, plan: Plan) -> UnitSums:
    """Return the sums over all evaluated rows, computed by all processes."""
    tasks = [
        (unit, first, plan)
        for unit, first, scan in zip(log.units, log.first_rows, log.scans, strict=True)
        if first + scan.rows > plan.split.boundary
    ]
    total: UnitSums | None = None
    jobs = log.jobs if len(log) >= FEWEST_PARALLEL else 1
    if jobs > 1 and log.scheduler is None:
        _check_sendable(plan.targets)
    with executed(jobs, log.scheduler) as run:
        for found in run(evaluate_unit, tasks):
            if found is not None:
                total = found if total is None else total + found
    if total is None:
        raise InputError("no row of the log is evaluated: give a smaller share to learn from")
    return total


def _check_sendable(targets: Mapping[str, Any]) -> None:
    """Refuse a policy that cannot be sent to other processes, such as a lambda."""
    for name, target in targets.items():
        try:
            pickle.dumps(target)
        except Exception as error:
            raise InputError(
                f"the policy {name!r} cannot be sent to other processes ({one_line(error)}); a "
                "function or class of a module is allowed: define it in a file, or give jobs=1"
            ) from error


def _split(log: PartedLog, candidates: Mapping[str, Any], share: float, by: By, seed: int) -> Split:
    if not any(learns(one) for one in candidates.values()):
        return Split(0, 0.0, False, seed)
    check_split(share, by, seed, len(log))
    if by == "random":
        return Split(0, share, True, seed)
    return Split(min(max(round(share * len(log)), 1), len(log) - 1), share, False, seed)


def _plan(
    log: PartedLog,
    split: Split,
    logged: LoggedEvidence,
    targets: dict[str, Any],
    estimators: dict[str, OffPolicyEstimator],
    scans: Sequence[UnitScan],
    interval: str,
    baseline: str,
) -> Plan:
    rest = logged.log
    rows = sum(one.rows for one in scans)
    if split.random:
        rows = round((1 - split.share) * rows)
    taken = frozenset().union(*(one.taken[0] for one in scans))
    untaken = np.array([one.name not in taken for one in log.schema.menu.slots[0].choices])
    observed = min(one.rewards[0] for one in scans), max(one.rewards[1] for one in scans)
    fitted = {
        name: fitted_to(estimators, _evidence(logged, target), rows)
        for name, target in targets.items()
    }
    drawn = len(log) if split.random else rows
    block_rows = -(-drawn // BLOCKS) if interval == "bootstrap" else 0
    # The sample is not sent to the processes: they need only the models that were fitted to it.
    numbers, folds = logged.numbers, folds_of(rest)
    none = logged.of_part(rest.rows(np.arange(1)), numbers[:1], folds[:1], [untaken])
    return Plan(
        log.reading,
        log.columns,
        split,
        none,
        numbers,
        folds,
        [untaken],
        targets,
        fitted,
        baseline,
        log.problem.scale.bounds or observed,
        _usual(rest.reward),
        float(rest.reward.mean()),
        block_rows,
        -(-drawn // max(block_rows, 1)),
    )


def _usual(rewards: Floats) -> Floats:
    """Return the most frequent rewards, in ascending order."""
    values, counts = np.unique(rewards, return_counts=True)
    return np.sort(values[np.argsort(-counts, kind="stable")[:MOST_USUAL]])


def _evidence(logged: LoggedEvidence, target: Any) -> Any:
    """Return what the sample says about a policy."""
    if isinstance(target, PartedColumns):
        target = target.in_rows(logged.log, logged.numbers)
    return logged.about(target).evidence


def fitted_to(
    estimators: dict[str, OffPolicyEstimator], evidence: Any, rows: int
) -> dict[str, OffPolicyEstimator]:
    """Return the estimators with thresholds that were chosen on the sample, as for all rows."""
    if rows > len(evidence.reward):
        counts: Floats = np.full(len(evidence.reward), rows / len(evidence.reward))
        evidence = evidence._replace(counts=counts)
    found: dict[str, OffPolicyEstimator] = {}
    for label, one in estimators.items():
        free = [field.name for field in fields(one) if field.name in TUNED]  # type: ignore[arg-type]
        if free and getattr(one, free[0]) is None:
            one = replace(one, **{free[0]: one.terms(evidence).threshold})  # type: ignore[type-var]
        found[label] = one
    return found
