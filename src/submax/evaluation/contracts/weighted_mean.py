"""The weighted mean of rewards, which self-normalized estimators share."""

from submax.core.arrays import Floats
from submax.evaluation.contracts.counts import mean
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.terms import Terms

SMALLEST_MEAN = 1e-300
"""Lower bound of the mean weight, so that a division by 0 does not occur if all weights are 0."""


def weighted_mean(evidence: Evidence, weight: Floats) -> Terms:
    """Return the terms of Σ_i w_i r_i / Σ_i w_i."""
    terms = Terms(weight * evidence.reward, weight, counts=evidence.counts)
    value, average = terms.value, max(mean(weight, evidence.counts), SMALLEST_MEAN)
    # The term of a row is v + w (r − v) / w̄.
    low, high = evidence._replace(
        reward=evidence.reward - value, bounds=_relative(evidence.bounds, value)
    ).reach(weight)
    return terms._replace(reach=(value + low / average, value + high / average))


def _relative(bounds: tuple[float, float] | None, value: float) -> tuple[float, float] | None:
    return None if bounds is None else (bounds[0] - value, bounds[1] - value)
