"""Truths that move."""

import math

from submax.core.arrays import Floats


def drifted(value: Floats, fresh: Floats, count: int, memory: float) -> Floats:
    """ρⁿ x + √(1 − ρ²ⁿ) x′ with ρ = exp(−1 / memory): the numbers x after n more decisions.

    x is ``value``, n is ``count`` and x′, in ``fresh``, is a draw from the same law. Mean zero and
    the variance are kept; the correlation with the past falls to 1/e after ``memory`` decisions.
    """
    kept = math.exp(-count / memory)
    new = math.sqrt(-math.expm1(-2 * count / memory))
    return kept * value + new * fresh
