"""Inverse propensity scoring with clipped weights."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import one_of, positive
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.contracts.threshold import TUNINGS, candidate_thresholds
from submax.evaluation.off_policy.inverse_propensity import InversePropensity


@dataclass(frozen=True)
class ClippedInversePropensity(OffPolicyEstimator):
    """V = (1/n) Σ_i min(w_i, λ) r_i.

    λ is the ``threshold``; if it is None, the λ with the least estimated error is used
    (``tuning`` = "error"), or the smallest one that agrees with larger ones ("slope"). Clipping
    reduces the variance and adds a bias, which is downward if rewards are not negative. The
    confidence interval allows for this bias.

    Reference: Ionides (2008), Truncated importance sampling; the choice of λ by an estimate of the
    mean squared error follows Wang, Agarwal and Dudík (2017).
    """

    threshold: float | None = None
    tuning: str = "error"
    short: ClassVar[str] = "clipped"
    adds_up: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("tuning", self.tuning, TUNINGS)
        if self.threshold is not None:
            positive("threshold", self.threshold)

    def terms(self, evidence: Evidence) -> Terms:
        weight, reward = evidence.weight, evidence.reward

        def terms_and_lost(threshold: float) -> tuple[Floats, Floats]:
            clipped = np.minimum(weight, threshold)
            return clipped * reward, (weight - clipped) * reward

        chosen = self.threshold or TUNINGS[self.tuning](
            candidate_thresholds(weight, evidence.counts), terms_and_lost, evidence.counts
        )
        kept, _ = terms_and_lost(chosen)
        reach = evidence.reach(np.array([0.0, chosen]))
        plain = InversePropensity().terms(evidence)
        return Terms(kept, None, reach, chosen, plain, evidence.counts)
