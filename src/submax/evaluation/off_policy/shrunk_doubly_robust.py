"""The doubly robust estimator with shrunk weights."""

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

ROOT_PER_THRESHOLD = 3.0
"""√λ over a candidate threshold: a weight as large as the threshold is reduced by a tenth."""
ROOT_WITHOUT_SHRINKAGE = 100.0
"""√λ over the largest weight, for one more candidate: no weight is reduced by more than 1e-4."""


@dataclass(frozen=True)
class ShrunkDoublyRobust(OffPolicyEstimator):
    """V = (1/n) Σ_i [Σ_a π(a | x_i) q̂(x_i, a) + λ w_i / (w_i² + λ) (r_i − q̂(x_i, a_i))].

    λ is the ``shrinkage``; if it is None, the λ with the least estimated error is used
    (``tuning`` = "error"), or the smallest one that agrees with larger ones ("slope"), among
    values that hardly change weights which are not large. λ = ∞ is the doubly robust estimator,
    λ = 0 the direct method. The confidence interval allows for the bias of the shrinkage.

    Reference: Su, Dimakopoulou, Krishnamurthy and Dudík (2020), Doubly robust off-policy
    evaluation with shrinkage; these are their optimistic weights.
    """

    shrinkage: float | None = None
    tuning: str = "error"
    short: ClassVar[str] = "dr-shrinkage"
    adds_up: ClassVar[bool] = True
    uses_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("tuning", self.tuning, TUNINGS)
        if self.shrinkage is not None:
            positive("shrinkage (λ)", self.shrinkage)

    def terms(self, evidence: Evidence) -> Terms:
        correction = evidence.weight * (evidence.reward - evidence.predicted)

        def terms_and_lost(root: float) -> tuple[Floats, Floats]:
            kept = correction / (1 + (evidence.weight / root) ** 2)
            return evidence.expected + kept, correction - kept

        root = float(np.sqrt(self.shrinkage or 0.0))
        if self.shrinkage is None:
            tried = candidate_thresholds(evidence.weight, evidence.counts)
            roots = np.append(ROOT_PER_THRESHOLD * tried, ROOT_WITHOUT_SHRINKAGE * tried[-1])
            root = TUNINGS[self.tuning](roots, terms_and_lost, evidence.counts)
        # Shrunk weights λ w / (w² + λ) are at most √λ / 2.
        reach = evidence.reach(np.minimum(evidence.weight, root / 2), corrects_model=True)
        used = self.shrinkage or float(root**2)
        kept, _ = terms_and_lost(root)
        plain = DoublyRobust().terms(evidence)
        return Terms(kept, None, reach, used, plain, evidence.counts)
