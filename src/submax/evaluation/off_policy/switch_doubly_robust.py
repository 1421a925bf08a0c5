"""The switch doubly robust estimator."""

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


@dataclass(frozen=True)
class SwitchDoublyRobust(OffPolicyEstimator):
    """V = (1/n) Σ_i [Σ_a π(a | x_i) q̂(x_i, a) + w_i 1(w_i ≤ τ) (r_i − q̂(x_i, a_i))].

    Where a weight is beyond τ the model alone speaks. τ is the ``threshold``, None: the one of
    least error; τ = ∞ is doubly robust, τ = 0 the direct method. The interval allows for the
    bias that the switch brings.

    Reference: Wang, Agarwal and Dudík (2017), Optimal and adaptive off-policy evaluation in
    contextual bandits.
    """

    threshold: float | None = None
    short: ClassVar[str] = "switch-dr"
    uses_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threshold is not None:
            positive("threshold", self.threshold)

    def terms(self, evidence: Evidence) -> Terms:
        """What the model expects, and its errors where weights are not too large."""
        correction = evidence.weight * (evidence.reward - evidence.predicted)

        def parts(threshold: float) -> tuple[Floats, Floats]:
            kept = np.where(evidence.weight <= threshold, correction, 0.0)
            return evidence.expected + kept, correction - kept

        chosen = self.threshold or least_error(candidates(evidence.weight), parts)
        width = evidence.widest(np.minimum(evidence.weight, chosen), corrects=True)
        kept, lost = parts(chosen)
        return Terms(kept, width=width, threshold=chosen, lost=lost)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """A threshold that is given, and one that is chosen."""
        yield cls(2.0)
        yield cls()
