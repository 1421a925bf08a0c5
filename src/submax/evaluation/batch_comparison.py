"""Compares policies on a log that is read in batches."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError, one_line
from submax.evaluation.batch_sums import TUNED, Plan, PolicySums, Split, UnitSums, evaluate_unit
from submax.evaluation.batches import FEWEST_PARALLEL, PartedColumns, PartedLog, UnitScan, executed
from submax.evaluation.diagnostics import (
    UNIFORM_TOLERANCE,
    Caution,
    large_reward_cautions,
    propensity_cautions,
    rare_reward_cautions,
    weight_cautions,
)
from submax.evaluation.estimates import (
    LOGGING_POLICY,
    ComparisonOptions,
    Difference,
    Estimate,
    EstimatorSet,
    applicable_estimators,
    intervals_of,
    recommended,
)
from submax.evaluation.estimators import OffPolicyEstimator
from submax.evaluation.evidence import LoggedEvidence
from submax.evaluation.intervals import BLOCKS, Terms
from submax.evaluation.log import By, check_split
from submax.evaluation.overview import Overview, field_facts
from submax.evaluation.reward_models import folds_of
from submax.evaluation.targets import TargetPolicy, learned_target, learns, training_warnings


class PartedComparison(NamedTuple):
    """The results of an evaluation in parts: what ``Comparison`` is made of."""

    estimates: list[Estimate]
    notes: list[str]
    differences: list[Difference]
    overview: Overview


class PartedResults(NamedTuple):
    """The sums over all evaluated rows, and how intervals are computed from them."""

    log: PartedLog
    plan: Plan
    total: UnitSums
    estimator_set: EstimatorSet

    def compared(
        self, candidates: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> PartedComparison:
        """Return all estimates, notes, differences and the overview."""
        estimates, differences = [self._logging_policy()], list[Difference]()
        cautions = self._log_cautions()
        for name in candidates:
            mine = self._estimates(name, self.total.policies[name], cautions)
            estimates += mine
            if name != self.plan.baseline:
                differences += self._differences(name, mine)
        policies = self.total.policies
        overlap = {name: policies[name].overlap for name in candidates}
        return PartedComparison(
            estimates, self._notes(candidates), differences, self._overview(settings, overlap)
        )

    def _terms(self, sums: PolicySums, label: str) -> Terms:
        interval, bounds = self.estimator_set.interval, self.plan.bounds
        found = sums.estimates[label].terms(interval, bounds)
        if label not in sums.plain:
            return found
        return found._replace(without_threshold=sums.plain[label].terms(interval, bounds))

    def _logging_policy(self) -> Estimate:
        sums = self.total.policies[LOGGING_POLICY]
        diagnostics = sums.diagnostics(self.plan.usual)
        values, counts = self.total.log.reward_terms(self.plan.centre)
        cautions = [*rare_reward_cautions(diagnostics), *large_reward_cautions(values, counts)]
        bounds = self.log.problem.scale.bounds
        ((value, ends, _),) = self.estimator_set.bounded([self._terms(sums, "mean")], bounds)
        sentences = tuple(one.sentence for one in cautions)
        return Estimate(
            LOGGING_POLICY, "mean", value, ends, None, diagnostics, sentences, recommended=True
        )

    def _log_cautions(self) -> list[Caution]:
        log = self.total.log
        checked = [one.calibration for one in log.facts(self.log.schema)]
        known = [one for one in checked if one is not None]
        worst = max(known, key=lambda one: abs(one.z), default=None)
        ends = log.by_set.values()
        uniform = all(high <= (1 + UNIFORM_TOLERANCE) * low for low, high in ends)
        rows, rarest = log.rewards.rows, min(low for low, _ in ends)
        found = []
        if len(self.log.schema.menu.slots[0].choices) < 2:
            alone = "the log has only one action, so that there is nothing to compare"
            found.append(Caution("all", alone))
        values, counts = log.reward_terms(self.plan.centre)
        return [
            *found,
            *propensity_cautions(worst, rarest, rows, uniform),
            *large_reward_cautions(values, counts),
        ]

    def _estimates(
        self, name: str, sums: PolicySums, log_cautions: Sequence[Caution]
    ) -> list[Estimate]:
        diagnostics = sums.diagnostics(self.plan.usual)
        rarest = min(low for low, _ in self.total.log.by_set.values())
        choices = self.log.schema.menu.slots[0].choices
        never = [one.name for one, no in zip(choices, self.plan.untaken[0], strict=True) if no]
        cautions = [
            *weight_cautions(
                diagnostics, sums.distance_from_one(1 / rarest), sums.residual(), never, False
            ),
            *log_cautions,
        ]
        terms = {label: self._terms(sums, label) for label in sums.estimates}
        bounds = self.log.problem.scale.bounds
        bounded = self.estimator_set.bounded(list(terms.values()), bounds)
        found = []
        for label, (value, ends, beyond) in zip(terms, bounded, strict=True):
            estimator = self.plan.estimators[name][label]
            used = next((getattr(estimator, one) for one in TUNED if hasattr(estimator, one)), None)
            sentences = (*(one.sentence for one in cautions if one.concerns(estimator)), *beyond)
            found.append(Estimate(name, label, value, ends, used, diagnostics, sentences))
        best = recommended(found)
        joint = self.estimator_set.joint(terms[best.estimator], bounds)
        return [
            one._replace(recommended=True, joint=joint) if one is best else one for one in found
        ]

    def _differences(self, name: str, estimates: Sequence[Estimate]) -> list[Difference]:
        sums, level = self.total.policies[name], self.estimator_set.level_of_differences
        interval, terms = self.estimator_set.interval, []
        for label, one in sums.estimates.items():
            plain = sums.plain.get(label)
            without = None if plain is None else plain.difference(interval, self.plan.bounds)
            terms.append(
                one.difference(interval, self.plan.bounds)._replace(without_threshold=without)
            )
        bounds = self.log.problem.scale.bounds
        found = intervals_of(terms, interval, level, self.estimator_set.seed, bounds)
        errors = [one.error_of_difference() for one in sums.estimates.values()]
        rows, based = sums.moments.rows, self.plan.baseline
        return [
            Difference(name, based, one.estimator, value, ends, error, rows, level, one.recommended)
            for one, (value, ends, _), error in zip(estimates, found, errors, strict=True)
        ]

    def _notes(self, candidates: Mapping[str, Any]) -> list[str]:
        rows, sample = self.total.log.rewards.rows, len(self.log.numbers)
        notes = [*self.log.notes, *self.plan.logged.model_choice.notes()]
        for name, target in self.plan.targets.items():
            if learns(candidates[name]) and not isinstance(target, TargetPolicy):
                short = training_warnings(target.policy, sample - len(self.plan.numbers))
                notes += [f"{name}: {sentence}" for sentence in short]
            learned = target.base if isinstance(target, TargetPolicy) else target
            ignores = learned is not None and not learned.policy.traits.uses_context
            if ignores and self.log.schema.context.width:
                notes.append(f"{name} does not look at the context")
            if learned is not None and not learns(candidates[name]):
                notes.append(
                    f"{name} was learned before: whether it learned from some of these rows is not "
                    "known"
                )
        notes.append(f"evaluated on {rows} of {len(self.log)} rows, which were read in parts")
        if sample < len(self.log):
            notes.append(
                f"policies, reward models and thresholds were fitted to parts of a random sample "
                f"of {sample} rows: policies learned from {sample - len(self.plan.numbers)} of them"
            )
        return notes

    def _overview(self, settings: Mapping[str, Any], overlap: Mapping[str, Any]) -> Overview:
        sums, mean = self.total.log, self.total.policies[LOGGING_POLICY].estimates["mean"]
        rows = sums.rewards.rows
        value = mean.terms("gamma", self.plan.bounds).value
        rest = self.log.sample.rows(self.plan.split.evaluated(self.log.numbers))
        return Overview(
            rows=rows,
            learned_rows=len(self.log) - rows,
            reward_kind=str(self.log.schema.rewards["kind"]),
            rewards=(float(sums.ends[0]), value, float(sums.ends[-1])),
            propensities=sums.propensities(),
            estimated=0,
            choices=sums.facts(self.log.schema),
            fields=field_facts(rest),
            settings=settings,
            digest=self.log.fingerprint,
            overlap=overlap,
        )


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
    estimator_set = EstimatorSet(
        estimators, interval, options.level, seed, together, len(candidates)
    )
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
        free = [field.name for field in fields(one) if field.name in TUNED]  # type: ignore[arg-type]  # a dataclass
        if free and getattr(one, free[0]) is None:
            one = replace(one, **{free[0]: one.terms(evidence).threshold})  # type: ignore[type-var]  # as above
        found[label] = one
    return found
