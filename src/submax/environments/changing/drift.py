"""One step of a stationary drift, for environments whose hidden truth changes."""

import math

from submax.core.arrays import Floats


def drifted(value: Floats, fresh: Floats, count: int, memory: float) -> Floats:
    """The values x after n more decisions: ρⁿ x + √(1 − ρ²ⁿ) x′ with ρ = exp(−1 / memory).

    x is ``value``, n is ``count``, and x′ is ``fresh``, an independent draw from the distribution
    of x. If x has mean zero, its mean and variance stay the same; its correlation with the past
    falls to 1/e after ``memory`` decisions.
    """
    kept = math.exp(-count / memory)
    new = math.sqrt(-math.expm1(-2 * count / memory))
    return kept * value + new * fresh
