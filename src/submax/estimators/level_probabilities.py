"""Distributions over reward levels that have a given mean."""

import numpy as np

from submax.core.arrays import Floats

FLOOR = 1e-3
"""A level has at least this multiple of the uniform share, even if it was never observed."""
TILTS = np.linspace(-60.0, 60.0, 601)
"""Exponents among which the one with the wanted mean is found by interpolation."""


def level_probabilities(levels: Floats, share: Floats, value: Floats) -> Floats:
    """Return p(l | a) of actions with expected reward ``value``: ``[R, n, K] -> [R, n, L, K]``.

    ``levels [R, L]`` are the rewards and ``share [R, L]`` says how often each occurs; the value is
    scaled so that the lowest level is 0 and the highest 1. Of all distributions with this mean,
    p(l) ∝ share_l exp(t level_l) differs least from the share (in relative entropy). With two
    levels the probability of the higher one is the value.

    >>> levels, share = np.array([[0.0, 1.0]]), np.array([[0.9, 0.1]])
    >>> found = level_probabilities(levels, share, np.full((1, 1, 1), 0.3))
    >>> found.round(3).ravel().tolist()
    [0.7, 0.3]
    """
    count = levels.shape[1]
    if count == 2:
        return np.stack([1.0 - value, value], axis=2)
    found = np.empty((*value.shape[:2], count, value.shape[2]))
    for replica in range(len(levels)):
        span = max(levels[replica, -1] - levels[replica, 0], 1e-300)
        height = (levels[replica] - levels[replica, 0]) / span
        base = np.maximum(share[replica], FLOOR / count)
        tilted = base * np.exp(TILTS[:, None] * (height - height.max() * (TILTS[:, None] > 0)))
        tilted /= tilted.sum(axis=1, keepdims=True)
        mean = tilted @ height
        tilt = np.interp(value[replica], mean, TILTS)[:, None]
        power = np.log(base)[:, None] + tilt * height[:, None]
        power -= power.max(axis=1, keepdims=True)
        chances = np.exp(power)
        found[replica] = chances / chances.sum(axis=1, keepdims=True)
    return found
