"""The switch doubly robust estimator."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import one_of, positive
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.contracts.threshold import TUNINGS, candidate_thresholds
from submax.evaluation.off_policy.doubly_robust import DoublyRobust


@dataclass(frozen=True)
class SwitchDoublyRobust(OffPolicyEstimator):
    """V = (1/n) Σ_i [Σ_a π(a | x_i) q̂(x_i, a) + w_i 1(w_i ≤ τ) (r_i − q̂(x_i, a_i))].

    A row whose weight exceeds τ is estimated by the model alone. τ is the ``threshold``; if it is
    None, the τ with the least estimated error is used (``tuning`` = "error"), or the smallest one
    that agrees with larger ones ("slope"). τ = ∞ is the doubly robust estimator,
    τ = 0 the direct method. The confidence interval allows for the bias of the switch.

    Reference: Wang, Agarwal and Dudík (2017), Optimal and adaptive off-policy evaluation in
    contextual bandits.
    """

    threshold: float | None = None
    tuning: str = "error"
    short: ClassVar[str] = "switch-dr"
    adds_up: ClassVar[bool] = True
    uses_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("tuning", self.tuning, TUNINGS)
        if self.threshold is not None:
            positive("threshold", self.threshold)

    def terms(self, evidence: Evidence) -> Terms:
        correction = evidence.weight * (evidence.reward - evidence.predicted)

        def terms_and_lost(threshold: float) -> tuple[Floats, Floats]:
            kept = np.where(evidence.weight <= threshold, correction, 0.0)
            return evidence.expected + kept, correction - kept

        chosen = self.threshold or TUNINGS[self.tuning](
            candidate_thresholds(evidence.weight, evidence.counts), terms_and_lost, evidence.counts
        )
        reach = evidence.reach(np.minimum(evidence.weight, chosen), corrects_model=True)
        kept, _ = terms_and_lost(chosen)
        plain = DoublyRobust().terms(evidence)
        return Terms(kept, None, reach, chosen, plain, evidence.counts)
