"""Clusters of rows that depend on each other, such as the rows of one user."""

import numpy as np

from submax.core.arrays import Booleans, Integers
from submax.core.errors import InputError


def random_clusters(cluster: Integers, count: int, seed: int) -> Booleans:
    """Return random clusters that together have about ``count`` rows, as a mask of rows."""
    sizes = np.bincount(cluster)
    if len(sizes) < 2:
        raise InputError(
            "all rows are of one cluster, which cannot be split at random: split by time, or name "
            "a column with several clusters"
        )
    order = np.random.default_rng(seed).permutation(len(sizes))
    rows = np.cumsum(sizes[order])
    taken = min(int(np.searchsorted(rows, count)) + 1, len(sizes) - 1)
    return np.isin(cluster, order[:taken])


def renumbered(cluster: Integers) -> Integers:
    """Return the numbers of clusters without gaps, in the same order."""
    found: Integers = np.unique(cluster, return_inverse=True)[1].ravel()
    return found
