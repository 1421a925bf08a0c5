"""A mean of rewards, in which rows have weights."""

from submax.core.arrays import Floats
from submax.evaluation.evidence import Evidence
from submax.evaluation.terms import Terms

TINY = 1e-300
"""In place of a mean weight of 0, by which nothing can be divided."""


def weighted_mean(evidence: Evidence, weight: Floats) -> Terms:
    """Σ_i w_i r_i / Σ_i w_i."""
    width = evidence.widest(weight) / max(float(weight.mean()), TINY)
    return Terms(weight * evidence.reward, weight, width=width)
