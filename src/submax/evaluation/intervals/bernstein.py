"""Confidence intervals by the empirical Bernstein bound."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval
from submax.evaluation.intervals.interval_method import each, standard_error_of_mean


def bernstein(
    terms: Sequence[Terms], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return the intervals V ± √(2 s² ln(4/δ) / n) + 7 M ln(4/δ) / (3 (n − 1)), δ = 1 − level.

    This is the empirical Bernstein bound. For a mean of terms that lie in an interval of width M
    it holds for every n, not only for large n. M is known if rewards are bounded and weights are
    clipped. Without clipping M is computed from the largest observed weight, and for a ratio the
    terms are those of ``influence``: in both cases the bound holds only approximately.

    Reference: Maurer and Pontil (2009), theorem 4, for both sides.
    """
    one = partial(_bernstein, log=np.log(4 / (1 - level)))
    return [each(one, terms_of_one) for terms_of_one in terms]


def _bernstein(terms: Terms, log: float) -> ConfidenceInterval:
    influence = terms.influence()
    count = terms.decisions
    if count < 2:
        return ConfidenceInterval.around(terms.value, float("inf"))
    low, high = terms.reach if terms.reach is not None else (influence.min(), influence.max())
    spread = np.sqrt(2 * log) * standard_error_of_mean(influence, terms.counts)
    half = spread + 7 * (high - low) * log / (3 * (count - 1))
    return ConfidenceInterval.around(terms.value, float(half))
