"""The divergence between Bernoulli distributions, and its inverse."""

import numpy as np
import scipy

from submax.core.arrays import Floats

MOST_STEPS = 60
"""Newton's method takes fewer steps than this; the number only bounds the loop."""
CLOSE = 1e-12
"""The search ends when every divergence is this close to its level, relative to 1 + level."""
LARGEST = 1 - 1e-15
"""The largest bound: one step of rounding below 1."""


def divergence(mean: Floats, other: Floats) -> Floats:
    """Return kl(p, q) = p ln(p / q) + (1 − p) ln((1 − p) / (1 − q)), elementwise."""
    rel_entr = scipy.special.rel_entr
    result: Floats = rel_entr(mean, other) + rel_entr(1 - mean, 1 - other)
    return result


def upper_bound(mean: Floats, level: Floats) -> Floats:
    """Return the largest q ≤ 1 with kl(p, q) ≤ level, elementwise.

    Two upper bounds of q are known in closed form: p + √(level / 2), from Pinsker's inequality, and
    1 − (1 − p) exp(−(level − p ln p) / (1 − p)), from q ≤ 1. Since kl(p, ·) is convex above p,
    Newton's method from an upper bound approaches the solution from above and never passes it.

    >>> upper_bound(np.array([0.0, 0.5]), np.array([np.log(2.0), 0.0])).round(6).tolist()
    [0.5, 0.5]
    """
    rest = np.maximum(1 - mean, 1e-300)
    near_one = 1 - rest * np.exp(-(level - scipy.special.xlogy(mean, mean)) / rest)
    bound = np.clip(np.minimum(mean + np.sqrt(level / 2), near_one), mean, LARGEST)
    for _ in range(MOST_STEPS):
        excess = divergence(mean, bound) - level
        if np.all(excess <= CLOSE * (1 + level)):
            break
        slope = (bound - mean) / np.maximum(bound * (1 - bound), 1e-300)
        step = np.where(excess > 0, excess / np.maximum(slope, 1e-300), 0.0)
        bound = np.maximum(bound - step, mean)
    return np.where(mean >= LARGEST, mean, bound)
