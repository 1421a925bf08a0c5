"""The layout of a head that gives a density over real-valued parts of an action.

Behind the logits of the C choices stand the logits of K components, their locations, K · d
numbers, and their widths, K · d numbers. A component is a product of logistic densities, each cut
off at 0 and 1 and normalized.
"""

import functools
import math

import numpy as np

from submax.core.arrays import Floats

NARROWEST, WIDEST = 0.02, 2.0
"""The least and the most that the scale of a logistic density can be, on the way from 0 to 1."""
REACH = 2.0
"""How far a location can move from where it begins."""
LOG_NARROWEST = math.log(NARROWEST)
LOG_RANGE = math.log(WIDEST / NARROWEST)
FIRST_WIDTH = 1.0
"""Added to the output for a width, so that a density begins wide."""


def outputs(choices: int, reals: int, components: int) -> int:
    """The width of the head."""
    return choices + (components * (1 + 2 * reals) if reals else 0)


@functools.cache
def first_locations(components: int, reals: int) -> Floats:
    """Where the components begin, spread evenly over the unit cube: ``[K, d]``.

    Multiples of the powers of 1 / g, with g the root of g^{d+1} = g + 1, without their whole part.

    Reference: Roberts (2018), the generalized golden ratio.
    """
    golden = 2.0
    for _ in range(60):
        golden = (1 + golden) ** (1 / (reals + 1))
    steps = golden ** -np.arange(1.0, reals + 1)
    places: Floats = (0.5 + np.arange(components)[:, None] * steps) % 1
    return places
