"""The doubly robust estimator with shrunk weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive
from submax.evaluation.evidence import Evidence
from submax.evaluation.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.terms import Terms
from submax.evaluation.threshold import candidates, least_error

ROOTS = 3.0
"""√λ over a threshold: a weight as large as the threshold loses a tenth."""
UNSHRUNK = 100.0
"""Times the largest weight: the root of a λ by which no weight loses more than 1 in 10 000."""


@dataclass(frozen=True)
class ShrunkDoublyRobust(OffPolicyEstimator):
    """V = (1/n) Σ_i [Σ_a π(a | x_i) q̂(x_i, a) + λ w_i / (w_i² + λ) (r_i − q̂(x_i, a_i))].

    λ is the ``shrinkage``, None: the one of least error, under which weights that are not large
    stay nearly what they are; λ = ∞ is doubly robust, λ = 0 the direct method. The interval
    allows for the bias that shrinking brings.

    Reference: Su, Dimakopoulou, Krishnamurthy and Dudík (2020), Doubly robust off-policy
    evaluation with shrinkage; these are their optimistic weights.
    """

    shrinkage: float | None = None
    short: ClassVar[str] = "dr-shrinkage"
    uses_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.shrinkage is not None:
            positive("shrinkage (λ)", self.shrinkage)

    def terms(self, evidence: Evidence) -> Terms:
        """What the model expects, and its errors with weights that stay below √λ / 2."""
        correction = evidence.weight * (evidence.reward - evidence.predicted)

        def shrunk(root: float) -> tuple[Floats, Floats]:
            kept = correction / (1 + (evidence.weight / root) ** 2)
            return evidence.expected + kept, correction - kept

        roots = candidates(evidence.weight)
        tried = np.append(ROOTS * roots, UNSHRUNK * roots[-1])
        root = np.sqrt(self.shrinkage or 0.0) or least_error(tried, shrunk)
        width = evidence.widest(np.minimum(evidence.weight, root / 2), corrects=True)
        used = self.shrinkage or float(root**2)
        kept, lost = shrunk(float(root))
        return Terms(kept, width=width, threshold=used, lost=lost)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """A λ that is given, and one that is chosen."""
        yield cls(4.0)
        yield cls()
