"""Confidence intervals that also hold for rare rewards, by a gamma distribution."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import scipy

from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval
from submax.evaluation.intervals.interval_method import each

PSEUDO_OBSERVATION = 0.5
"""Share of the largest possible term that is added, at each end, to what was observed. 1 would make
the interval of a count exact and conservative, 1/2 corresponds to mid-p intervals. The value was
chosen by ``benchmarks/logs/rare_rewards.py`` among 0, 1/2 and 1. If all terms are equal it is 1:
with 1/2, a log without a reward would miss an expected number of 1.9 rewards in 15 of 100 logs."""
EQUAL_TERMS = 1e-12
"""Terms are equal if their standard deviation is at most this share of their mean, which rounding
errors cause."""
NORMAL_SHAPE = 1e8
"""Above this shape a gamma distribution is computed as a normal one with a correction for its
skewness, which is then at most 0.0002."""


def gamma(
    terms: Sequence[Terms], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return intervals whose ends are quantiles of shifted gamma distributions.

    The mean V of n terms t_i has the variance κ₂ = Σ (t_i − V)² / n² and the third cumulant
    κ₃ = Σ (t_i − V)³ / n³. A count in units of c that has these cumulants has c = κ₃ / κ₂ and an
    expectation of N = κ₂³ / κ₃² units. The exact (Garwood) interval of a Poisson count N is from
    the quantile of a gamma distribution of shape N to that of shape N + 1: one more count may
    have been possible.

    Accordingly, the upper end is V + u + c (G(N) − N), where G(N) is the quantile of the gamma
    distribution of shape N at 1 − (1 − level) / 2, and u is ``PSEUDO_OBSERVATION`` times the
    distance from V to the largest possible term, divided by n; N and c are computed with κ₂ + u²
    and κ₃ + u³. The lower end is the same in the other direction, with the smallest possible term.

    If rewards are common, κ₃ and u vanish against κ₂, and the interval is the normal one. In a log
    without any reward u is a whole observation, and the upper end is the exact one of a count of 0.
    With u = c / 2 the upper end agrees with the Cornish-Fisher expansion of the studentized mean to
    the second order.

    Reference: Fay and Feuer (1997), Confidence intervals for directly standardized rates; Fay and
    Kim (2017) for mid-p; Hall (1992), The bootstrap and Edgeworth expansion, for the expansion.
    *Departs from the papers:* the unit is matched to the third cumulant, and the distribution is
    shifted, so that one formula applies also to terms that are not counts, such as those of doubly
    robust estimates.
    """
    one = partial(_gamma, tail=(1 - level) / 2)
    return [each(one, terms_of_one) for terms_of_one in terms]


def _gamma(terms: Terms, tail: float) -> ConfidenceInterval:
    influence, value = terms.influence(), terms.value
    count = terms.decisions
    if count < 2:
        return ConfidenceInterval.around(value, float("inf"))
    distance = influence - value
    counted = distance if terms.counts is None else terms.counts * distance
    variance = float(distance @ counted) / (count * (count - 1))
    third = float(distance**2 @ counted) / count**3
    low, high = terms.reach if terms.reach is not None else (value, value)
    equal = variance * count <= (EQUAL_TERMS * value) ** 2
    share = 1.0 if equal else PSEUDO_OBSERVATION
    up, down = (share * max(reach, 0.0) / count for reach in (high - value, value - low))
    return ConfidenceInterval(
        value - down - gamma_quantile(1 - tail, variance + down**2, down**3 - third),
        value + up + gamma_quantile(1 - tail, variance + up**2, third + up**3),
    )


def gamma_quantile(probability: float, variance: float, third: float) -> float:
    """Return c (G(N) − N) with N = variance³ / third² and c = third / variance.

    G(N) is the quantile of the gamma distribution of shape N. If the third cumulant is negative,
    the distribution is reflected; if it is 0, the distribution is normal.
    """
    if not variance > 0:
        # All terms are equal; NaN stays NaN.
        return variance
    if third < 0:
        return -gamma_quantile(1 - probability, variance, -third)
    skewness = third / variance**1.5
    if skewness**2 * NORMAL_SHAPE < 1:
        z = float(scipy.special.ndtri(probability))
        return float(np.sqrt(variance) * (z + skewness * (z**2 - 1) / 3))
    shape, unit = skewness**-2, third / variance
    return float(unit * (scipy.special.gammaincinv(shape, probability) - shape))
