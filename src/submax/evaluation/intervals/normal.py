"""Confidence intervals by the normal approximation."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval
from submax.evaluation.intervals.interval_method import (
    each,
    normal_quantile,
    standard_error_of_mean,
)


def normal(
    terms: Sequence[Terms], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return the intervals V ± z s / √n, where s² is the variance of the terms.

    For a ratio the terms are those of the delta method. The intervals are too short if rewards are
    rare, because V is then not normal.
    """
    one = partial(_normal, z=normal_quantile(level))
    return [each(one, terms_of_one) for terms_of_one in terms]


def _normal(terms: Terms, z: float) -> ConfidenceInterval:
    error = standard_error_of_mean(terms.influence(), terms.counts)
    return ConfidenceInterval.around(terms.value, z * error)
