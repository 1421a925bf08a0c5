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


def median_delays(bins: Floats) -> Floats:
    """The delay that half of the rewards exceed, interpolated within its bin; NaN without any.

    ``bins [n, BINS]`` counts rewards; there is a median for each row.
    """
    half = bins.sum(axis=1) / 2
    reached = np.cumsum(bins, axis=1)
    place = (reached < half[:, None]).sum(axis=1)
    rows = np.arange(len(bins))
    count, before = bins[rows, place], reached[rows, place] - bins[rows, place]
    share = (half - before) / np.maximum(count, 1e-300)
    # Bins double in length, but for the first, which begins at 0; the last one has no end.
    within = np.where(place == 0, share, 2.0 ** (place - 1 + share * (place < BINS - 1)))
    median: Floats = np.where(half > 0, within, np.nan)
    return median
