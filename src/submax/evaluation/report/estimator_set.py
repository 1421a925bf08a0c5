"""Several off-policy estimators that evaluate the same policies."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.report.cautions import Caution, policy_cautions
from submax.evaluation.report.diagnostics import Diagnostics
from submax.evaluation.report.estimate import LOGGING_POLICY, Estimate
from submax.evaluation.report.intervals import INTERVALS, ConfidenceInterval
from submax.evaluation.report.logged_evidence import LoggedEvidence
from submax.evaluation.report.policy_evidence import PolicyEvidence
from submax.evaluation.terms import Terms


class EstimatorSet(NamedTuple):
    """Off-policy estimators by label, and the kind and level of their confidence intervals.

    ``seed`` is that of the bootstrap.
    """

    estimators: dict[str, OffPolicyEstimator]
    interval: str
    level: float
    seed: int

    def logging_policy(self, logged: LoggedEvidence) -> Estimate:
        """Return the mean reward of the evaluated rows, as the value of the logging policy."""
        about_log = logged.about_logging_policy()
        terms = make_off_policy("ips").terms(about_log.evidence)
        (interval,) = self._intervals([terms], about_log)
        diagnostics = Diagnostics.of(about_log)
        return Estimate(LOGGING_POLICY, "mean", terms.value, interval, None, diagnostics, ())

    def estimates(
        self,
        name: str,
        about_policy: PolicyEvidence,
        logged: LoggedEvidence,
        log_cautions: Sequence[Caution],
        same_rows: bool,
    ) -> Iterator[Estimate]:
        """Yield the value of one policy by each estimator.

        ``log_cautions`` concern the log and so all policies. ``same_rows`` says that the policy
        was learned from the rows on which it is evaluated.
        """
        diagnostics = Diagnostics.of(about_policy)
        cautions = [*policy_cautions(about_policy, diagnostics, logged, same_rows), *log_cautions]
        terms = [estimator.terms(about_policy.evidence) for estimator in self.estimators.values()]
        intervals = self._intervals(terms, about_policy)
        for (label, estimator), one, interval in zip(
            self.estimators.items(), terms, intervals, strict=True
        ):
            sentences = tuple(each.sentence for each in cautions if each.concerns(estimator))
            yield Estimate(name, label, one.value, interval, one.threshold, diagnostics, sentences)

    def _intervals(
        self, terms: list[Terms], about_policy: PolicyEvidence
    ) -> list[ConfidenceInterval]:
        """Return the interval of each estimate, cut off at the bounds of rewards if known."""
        intervals = INTERVALS[self.interval](terms, self.level, np.random.default_rng(self.seed))
        bounds = about_policy.evidence.bounds
        if bounds is None:
            return intervals
        ends = np.clip(np.array(intervals), *bounds).tolist()
        return [ConfidenceInterval(low, high) for low, high in ends]
