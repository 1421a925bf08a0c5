"""The bins of histograms of delays, which double in length."""

import math

import numpy as np

from submax.core.arrays import Floats, Integers

BINS = 26
"""Bins of delays: below 1 s, 1 to 2 s, 2 to 4 s, …, and more than 2²⁴ s, about half a year."""


def delay_bins(delay: Floats) -> Integers:
    """The bin of each delay in seconds."""
    place = np.ceil(np.log2(np.maximum(delay, 0.5))).astype(np.int64)
    return np.clip(place, 0, BINS - 1)


def bounds(place: int) -> tuple[float, float]:
    """The shortest and the longest delay of a bin, in seconds."""
    low = 0.0 if place == 0 else 2.0 ** (place - 1)
    return low, math.inf if place == BINS - 1 else 2.0**place


def median_delay(bins: Floats) -> float | None:
    """The delay that half of the rewards exceed, interpolated within its bin; None without any."""
    total = float(bins.sum())
    if total <= 0:
        return None
    reached = np.cumsum(bins)
    place = int(np.searchsorted(reached, total / 2))
    low, high = bounds(place)
    share = 1 - (float(reached[place]) - total / 2) / float(bins[place])
    if not math.isfinite(high):
        return low
    return high * share if place == 0 else low * 2**share
