"""The difference between the values of two policies on the same rows."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.errors import InputError
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals import INTERVALS
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval
from submax.evaluation.intervals.interval_method import normal_quantile, standard_error_of_mean


class Difference(NamedTuple):
    """How much more a policy would have earned per decision than a ``baseline``.

    Both are estimated from the same rows, so that the interval is that of the paired difference. It
    is shorter than the intervals of the two values suggest if both policies often agree.
    ``error`` is the standard error, ``rows`` the number of rows and ``level`` that of the interval.
    """

    policy: str
    baseline: str
    estimator: str
    value: float
    interval: ConfidenceInterval
    error: float
    rows: int
    level: float
    recommended: bool

    @property
    def is_clear(self) -> bool:
        """Whether the interval does not contain 0."""
        return self.interval.low > 0 or self.interval.high < 0

    def rows_needed(self, effect: float | None = None, power: float = 0.8) -> float:
        """Return how many rows a log needs so that a difference is found with this probability.

        n' = n ((z_level + z_power) e / d)², where e is the standard error with n rows and d is the
        ``effect``, by default the difference that was estimated. The number is as uncertain as
        the estimate itself if no effect is given.

        >>> interval = ConfidenceInterval(-0.01, 0.03)
        >>> one = Difference("p", "q", "dr", 0.01, interval, 0.01, 1000, 0.95, True)
        >>> round(one.rows_needed())
        7849
        """
        if not 0 < power < 1:
            raise InputError(
                f"the power is {power!r}; a number between 0 and 1 is allowed: give 0.8",
                parameter="power",
            )
        size = abs(self.value if effect is None else effect)
        if size == 0:
            return math.inf
        errors = normal_quantile(self.level) + normal_quantile(2 * power - 1)
        return self.rows * (errors * self.error / size) ** 2

    def row(self) -> dict[str, Any]:
        """Return the numbers as a row of a table."""
        return {
            "policy": self.policy,
            "baseline": self.baseline,
            "estimator": self.estimator,
            "recommended": self.recommended,
            "difference": self.value,
            "low": self.interval.low,
            "high": self.interval.high,
            "standard_error": self.error,
            "rows": self.rows,
            "rows_needed": self.rows_needed(),
        }


def difference_of(first: Terms, second: Terms) -> Terms:
    """Return the terms whose mean is the difference of two estimates from the same rows."""
    reach = None
    if first.reach is not None and second.reach is not None:
        reach = (first.reach[0] - second.reach[1], first.reach[1] - second.reach[0])
    plain = None
    if first.without_threshold is not None or second.without_threshold is not None:
        plain = difference_of(first.without_threshold or first, second.without_threshold or second)
    terms = first.influence() - second.influence()
    return Terms(terms, None, reach, None, plain, first.counts)


def intervals_of_differences(
    pairs: Sequence[tuple[Terms, Terms]], interval: str, level: float, seed: int
) -> list[tuple[float, ConfidenceInterval, float]]:
    """Return the difference, its interval and its standard error for each pair of estimates."""
    return intervals_of([difference_of(*pair) for pair in pairs], interval, level, seed)


def intervals_of(
    terms: Sequence[Terms], interval: str, level: float, seed: int
) -> list[tuple[float, ConfidenceInterval, float]]:
    """Return the value of each difference, its interval and its standard error."""
    ends = INTERVALS[interval](terms, level, np.random.default_rng(seed))
    return [
        (one.value, of_one, standard_error_of_mean(one.numerator, one.counts))
        for one, of_one in zip(terms, ends, strict=True)
    ]
