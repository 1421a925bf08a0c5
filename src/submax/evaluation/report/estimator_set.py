"""Several off-policy estimators that evaluate the same policies."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Integers
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals import INTERVALS
from submax.evaluation.intervals.clustered import clustered
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval
from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.overview.overlap import Overlap
from submax.evaluation.overview.slices import Slice, SliceEstimate
from submax.evaluation.report.comparisons.difference import Difference, intervals_of_differences
from submax.evaluation.report.diagnosis.caution import Caution
from submax.evaluation.report.diagnosis.cautions import policy_cautions
from submax.evaluation.report.diagnosis.diagnostics import Diagnostics
from submax.evaluation.report.diagnosis.reward_cautions import (
    large_reward_cautions,
    rare_reward_cautions,
)
from submax.evaluation.report.diagnosis.weight_cautions import spread_cautions
from submax.evaluation.report.estimate import LOGGING_POLICY, Estimate
from submax.evaluation.report.estimated_policy import EstimatedPolicy
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence
from submax.evaluation.report.evidence.policy_evidence import PolicyEvidence
from submax.evaluation.report.recommendation import recommended


class EstimatorSet(NamedTuple):
    """Off-policy estimators by label, and the kind and level of their confidence intervals.

    ``seed`` is that of the bootstrap. The intervals of ``together`` differences hold together at
    the level, because each has the level 1 − (1 − level) / together (Bonferroni).
    """

    estimators: dict[str, OffPolicyEstimator]
    interval: str
    level: float
    seed: int
    together: int = 1

    @property
    def level_of_differences(self) -> float:
        """The level of the interval of each difference."""
        if self.together == 1:
            return self.level
        return 1 - (1 - self.level) / self.together

    def logging_policy(
        self, logged: LoggedEvidence, slices: Sequence[Slice] = ()
    ) -> EstimatedPolicy:
        """Return the mean reward of the evaluated rows, as the value of the logging policy."""
        about_log = logged.about_logging_policy()
        terms = about_log.terms(make_off_policy("ips"))
        diagnostics = Diagnostics.of(about_log)
        cautions = [
            *rare_reward_cautions(diagnostics),
            *large_reward_cautions(about_log.evidence.reward, about_log.evidence.counts),
        ]
        (found,) = self.bounded([terms], about_log.evidence.bounds, about_log.cluster)
        sentences = tuple(one.sentence for one in cautions)
        mean = Estimate(
            LOGGING_POLICY, "mean", *found[:2], None, diagnostics, sentences, recommended=True
        )
        parts = self._slices(mean, make_off_policy("ips"), about_log, slices)
        return EstimatedPolicy([mean], [terms], about_log.cluster, slices=parts)

    def estimates(
        self,
        name: str,
        about_policy: PolicyEvidence,
        logged: LoggedEvidence,
        log_cautions: Sequence[Caution],
        same_rows: bool,
        slices: Sequence[Slice] = (),
    ) -> EstimatedPolicy:
        """Return the value of one policy by each estimator; one of them is recommended.

        ``log_cautions`` concern the log and so all policies. ``same_rows`` says that the policy
        was learned from the rows on which it is evaluated.
        """
        diagnostics = Diagnostics.of(about_policy)
        cautions = [*policy_cautions(about_policy, diagnostics, logged, same_rows), *log_cautions]
        terms = [about_policy.terms(estimator) for estimator in self.estimators.values()]
        bounded = self.bounded(terms, about_policy.evidence.bounds, about_policy.cluster)
        found = [
            Estimate(
                name,
                label,
                value,
                interval,
                one.threshold,
                diagnostics,
                (*(each.sentence for each in cautions if each.concerns(estimator)), *beyond),
            )
            for (label, estimator), one, (value, interval, beyond) in zip(
                self.estimators.items(), terms, bounded, strict=True
            )
        ]
        best = recommended(found)
        marked = [one._replace(recommended=one is best) for one in found]
        parts = self._slices(best, self.estimators[best.estimator], about_policy, slices)
        evidence = about_policy.evidence
        overlap = Overlap.of(evidence.weight, evidence.counts)
        return EstimatedPolicy(marked, terms, about_policy.cluster, overlap, parts)

    def _slices(
        self,
        whole: Estimate,
        estimator: OffPolicyEstimator,
        about_policy: PolicyEvidence,
        slices: Sequence[Slice],
    ) -> list[SliceEstimate]:
        """Return the estimates for the rows of each slice, by the estimator of the ``whole``."""
        found = []
        for one in slices:
            rows = about_policy.rows(one.mask)
            terms = rows.terms(estimator)
            ((value, interval, beyond),) = self.bounded([terms], rows.evidence.bounds, rows.cluster)
            diagnostics = Diagnostics.of(rows)
            cautions = [*rare_reward_cautions(diagnostics), *spread_cautions(diagnostics)]
            sentences = (*(each.sentence for each in cautions), *beyond)
            estimate = whole._replace(
                value=value,
                interval=interval,
                threshold=terms.threshold,
                diagnostics=diagnostics,
                cautions=sentences,
                recommended=True,
            )
            found.append(SliceEstimate(one.column, one.value, estimate))
        return found

    def differences(self, policy: EstimatedPolicy, baseline: EstimatedPolicy) -> list[Difference]:
        """Return the difference of a policy from a baseline by each estimator.

        Both were evaluated on the same rows. The logging policy has one estimate, its mean, from
        which all estimates of a policy are subtracted.
        """
        one_mean = baseline.estimates[0].policy == LOGGING_POLICY
        others = baseline.terms * len(policy.terms) if one_mean else baseline.terms
        pairs = list(zip(policy.terms, others, strict=True))
        if policy.cluster is not None:
            pairs = [
                (clustered(one, policy.cluster), clustered(other, policy.cluster))
                for one, other in pairs
            ]
        found = intervals_of_differences(pairs, self.interval, self.level_of_differences, self.seed)
        name = baseline.estimates[0].policy
        return [
            Difference(
                estimate.policy,
                name,
                estimate.estimator,
                *numbers,
                round(one.decisions),
                self.level_of_differences,
                estimate.recommended,
            )
            for estimate, numbers, one in zip(policy.estimates, found, policy.terms, strict=True)
        ]

    def bounded(
        self,
        terms: Sequence[Terms],
        bounds: tuple[float, float] | None,
        cluster: Integers | None = None,
    ) -> list[tuple[float, ConfidenceInterval, list[str]]]:
        """Return value and interval of each estimate, and a sentence if the value was cut off.

        Both are cut off at the ``bounds`` of rewards if these are known, because no policy can earn
        more or less. The value is always inside of its interval.
        """
        rng = np.random.default_rng(self.seed)
        units = terms if cluster is None else [clustered(one, cluster) for one in terms]
        intervals = INTERVALS[self.interval](units, self.level, rng)
        low, high = bounds or (-np.inf, np.inf)
        found = []
        for one, ends in zip(terms, intervals, strict=True):
            value = float(np.clip(one.value, low, high))
            # The percentiles of a bootstrap can lie on one side of the value.
            around = ends.joined(ConfidenceInterval(one.value, one.value))
            interval = ConfidenceInterval(*np.clip(around, low, high).tolist())
            sentence = (
                f"the estimate is {one.value:.4g} and was cut off at {value:g}, because "
                f"rewards are from {low:g} to {high:g}"
            )
            found.append((value, interval, [sentence] if abs(one.value - value) > 0 else []))
        return found
