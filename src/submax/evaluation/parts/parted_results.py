"""Estimates, warnings and the overview from the sums over all parts of a log."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from submax.evaluation.choosing.training_length import training_warnings
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.overview.field_facts import field_facts
from submax.evaluation.overview.overview import Overview
from submax.evaluation.parts.parted_log import PartedLog
from submax.evaluation.parts.plan import TUNED, Plan, UnitSums
from submax.evaluation.parts.policy_sums import PolicySums
from submax.evaluation.report.comparisons.difference import Difference, intervals_of
from submax.evaluation.report.diagnosis.caution import Caution
from submax.evaluation.report.diagnosis.cautions import UNIFORM_TOLERANCE
from submax.evaluation.report.diagnosis.reward_cautions import (
    large_reward_cautions,
    rare_reward_cautions,
)
from submax.evaluation.report.diagnosis.weight_cautions import propensity_cautions, weight_cautions
from submax.evaluation.report.estimate import LOGGING_POLICY, Estimate
from submax.evaluation.report.estimator_set import EstimatorSet
from submax.evaluation.report.learned_targets import learns
from submax.evaluation.report.recommendation import recommended
from submax.evaluation.targets.target_policy import TargetPolicy


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
        return [one._replace(recommended=one is best) for one in found]

    def _differences(self, name: str, estimates: Sequence[Estimate]) -> list[Difference]:
        sums, level = self.total.policies[name], self.estimator_set.level_of_differences
        interval, terms = self.estimator_set.interval, []
        for label, one in sums.estimates.items():
            plain = sums.plain.get(label)
            without = None if plain is None else plain.difference(interval, self.plan.bounds)
            terms.append(
                one.difference(interval, self.plan.bounds)._replace(without_threshold=without)
            )
        found = intervals_of(terms, interval, level, self.estimator_set.seed)
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
