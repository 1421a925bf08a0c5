"""One policy by several estimators."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.report.cautions import Caution, policy_cautions
from submax.evaluation.report.diagnostics import Diagnostics
from submax.evaluation.report.intervals import INTERVALS, Interval
from submax.evaluation.report.witness import Seen, Witness
from submax.evaluation.terms import Terms

LOGGING = "logging policy"
"""The name of the policy that wrote the log."""


class Estimate(NamedTuple):
    """What a policy would have earned a decision, by one estimator; ``cautions`` concern it."""

    policy: str
    estimator: str
    value: float
    interval: Interval
    threshold: float | None
    diagnostics: Diagnostics
    cautions: tuple[str, ...]


class Judge(NamedTuple):
    """Estimators by name, and how their intervals are made."""

    estimators: dict[str, OffPolicyEstimator]
    interval: str
    level: float
    seed: int

    def logging(self, witness: Witness) -> Estimate:
        """The mean reward of the log."""
        seen = witness.of_the_log()
        terms = make_off_policy("ips").terms(seen.evidence)
        (ends,) = self._intervals([terms], seen)
        return Estimate(LOGGING, "mean", terms.value, ends, None, Diagnostics.of(seen), ())

    def estimates(
        self, name: str, seen: Seen, witness: Witness, general: Sequence[Caution], same_rows: bool
    ) -> Iterator[Estimate]:
        """One policy by all estimators; ``general`` cautions are those about the log."""
        found = Diagnostics.of(seen)
        cautions = [*policy_cautions(seen, found, witness, same_rows), *general]
        terms = [estimator.terms(seen.evidence) for estimator in self.estimators.values()]
        judged = zip(self.estimators.items(), terms, self._intervals(terms, seen), strict=True)
        for (label, estimator), one, ends in judged:
            told = tuple(one.sentence for one in cautions if one.concerns(estimator))
            yield Estimate(name, label, one.value, ends, one.threshold, found, told)

    def _intervals(self, terms: list[Terms], seen: Seen) -> list[Interval]:
        """As far as they lie within the bounds of rewards, where these are known."""
        found = INTERVALS[self.interval](terms, self.level, np.random.default_rng(self.seed))
        if seen.evidence.bounds is None:
            return found
        ends = np.clip(np.array(found), *seen.evidence.bounds).tolist()
        return [Interval(low, high) for low, high in ends]
