"""Where falling functions are 0."""

from collections.abc import Callable

import numpy as np

from submax.core.arrays import Floats

STEPS = 60
WALK = 2.0
"""How far to go where the function does not fall."""
FLAT = 1e-150
"""A slope that falls less than this is divided by as if it were so steep."""


def falling_root(
    function: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    lowest: Floats,
    highest: Floats,
    close: float,
    enough: float = 0.0,
) -> Floats:
    """The place where a function falls through 0, entry by entry.

    Newton's method, held between bounds that draw nearer: ``function`` gives value and slope at
    each place. Where it does not fall the search walks, and where a step would leave the bounds it
    halves them. An entry settles after a step shorter than ``close``, or one from a value within
    ``enough`` of 0: after a step of Newton's the error left is about the square of what was, after
    a halving about the step. Then it stays, so that no entry depends on what others need.

    >>> place = np.array([0.5, 3.0])
    >>> falling_root(lambda x: (2 - x**3, -3 * x**2), place, 0 * place, 9 + place, 1e-3).round(5)
    array([1.25992, 1.25992])
    """
    place, moving = start, np.array(True)
    for _ in range(STEPS):
        value, slope = function(place)
        lowest, highest = np.where(value > 0, place, lowest), np.where(value < 0, place, highest)
        falls = slope < 0
        there = place + np.where(falls, value / np.maximum(-slope, FLAT), WALK * np.sign(value))
        # At a bound it has been, unless it stands there.
        down, up = (there <= lowest) & (there < place), (there >= highest) & (there > place)
        there = np.where(down | up, (lowest + highest) / 2, there)
        there = np.where(moving, there, place)
        moving = (np.abs(there - place) >= close) & (np.abs(value) > enough)
        place = there
        if not moving.any():
            break
    return place
