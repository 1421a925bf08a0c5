"""The weighted mean of rewards, which self-normalized estimators share."""

from submax.core.arrays import Floats
from submax.evaluation.evidence import Evidence
from submax.evaluation.terms import Terms

SMALLEST_MEAN = 1e-300
"""Lower bound of the mean weight, so that a division by 0 does not occur if all weights are 0."""


def weighted_mean(evidence: Evidence, weight: Floats) -> Terms:
    """Return the terms of Σ_i w_i r_i / Σ_i w_i."""
    width = evidence.width_of_terms(weight) / max(float(weight.mean()), SMALLEST_MEAN)
    return Terms(weight * evidence.reward, weight, width=width)
