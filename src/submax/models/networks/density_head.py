"""The output layout of a network head that describes a density over real-valued parts.

The outputs are the logits of the C choices, the logits of K mixture components, the K · d locations
and the K · d widths of the components. A component is a product of d logistic densities, each
truncated to the range from 0 to 1.
"""

import functools
import math

import numpy as np

from submax.core.arrays import Floats

NARROWEST, WIDEST = 0.02, 2.0
"""The smallest and the largest scale of a logistic density, for numbers from 0 to 1: from a narrow
peak to a nearly uniform density."""
REACH = 2.0
"""Largest distance of a location from its initial value."""
LOG_NARROWEST = math.log(NARROWEST)
LOG_RANGE = math.log(WIDEST / NARROWEST)
FIRST_WIDTH = 1.0
"""Added to the output for a width, so that densities are wide before training."""


def outputs(choices: int, reals: int, components: int) -> int:
    """Return the number of outputs of the head."""
    return choices + (components * (1 + 2 * reals) if reals else 0)


@functools.cache
def first_locations(components: int, reals: int) -> Floats:
    """Return the initial locations of the components, spread evenly over the unit cube: ``[K, d]``.

    They are the fractional parts of 1/2 + k g^{−j}, with g the positive root of g^{d+1} = g + 1.

    Reference: Roberts (2018), the generalized golden ratio.
    """
    golden = 2.0
    for _ in range(60):
        golden = (1 + golden) ** (1 / (reals + 1))
    steps = golden ** -np.arange(1.0, reals + 1)
    places: Floats = (0.5 + np.arange(components)[:, None] * steps) % 1
    return places
