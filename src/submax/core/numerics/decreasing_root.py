"""Roots of decreasing functions."""

from collections.abc import Callable

import numpy as np

from submax.core.arrays import Floats

STEPS = 60
"""Largest number of iterations: enough bisections for the precision of a float64."""
WALK = 2.0
"""Length of a step at a point where the slope is not negative, so that Newton's step is useless."""
SMALLEST_SLOPE = 1e-150
"""Absolute slopes below this count as this slope, so that a Newton step does not divide by 0."""


def decreasing_root(
    function: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    lowest: Floats,
    highest: Floats,
    step_tolerance: float,
    value_tolerance: float = 0.0,
) -> Floats:
    """Return the point where a decreasing function crosses 0, for each entry of an array.

    ``function`` returns values and slopes. The method is Newton's, inside a bracket from ``lowest``
    to ``highest`` that shrinks at every step. At a point where the slope is not negative, the step
    has the fixed length ``WALK``; a step that would leave the bracket is replaced by bisection.

    An entry is final after a step shorter than ``step_tolerance``, or after a step from a point
    where the absolute value of the function was at most ``value_tolerance``. The remaining error is
    about the square of the error before a Newton step, or about the length of a bisection step. A
    final entry no longer changes, so that its result does not depend on the other entries.

    >>> place = np.array([0.5, 3.0])
    >>> decreasing_root(lambda x: (2 - x**3, -3 * x**2), place, 0 * place, 9 + place, 1e-3).round(5)
    array([1.25992, 1.25992])
    """
    point, active = start, np.array(True)
    for _ in range(STEPS):
        value, slope = function(point)
        lowest, highest = np.where(value > 0, point, lowest), np.where(value < 0, point, highest)
        falls = slope < 0
        moved = point + np.where(
            falls, value / np.maximum(-slope, SMALLEST_SLOPE), WALK * np.sign(value)
        )
        # A Newton step that reaches or leaves the bracket is replaced by bisection.
        down, up = (moved <= lowest) & (moved < point), (moved >= highest) & (moved > point)
        moved = np.where(down | up, (lowest + highest) / 2, moved)
        moved = np.where(active, moved, point)
        active = (np.abs(moved - point) >= step_tolerance) & (np.abs(value) > value_tolerance)
        point = moved
        if not active.any():
            break
    return point
