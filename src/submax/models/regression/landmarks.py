"""The choice of landmarks, the centres of kernels."""

import numpy as np

from submax.core.arrays import Floats

STEPS = 5
"""Steps of k-means. A few are enough: the centres only have to cover the points."""


def chosen_landmarks(points: Floats, most: int, rng: np.random.Generator) -> Floats:
    """Return up to ``most`` landmarks for points ``[n, D]``.

    If there are at most ``most`` distinct points, the landmarks are these points. Otherwise they
    are cluster centres found by k-means, which starts from random points.

    Reference: Zhang, Tsang and Kwok (2008), Improved Nyström low-rank approximation and error
    analysis.
    """
    shuffled = points[rng.permutation(len(points))]
    _, first = np.unique(shuffled, axis=0, return_index=True)
    centres = shuffled[np.sort(first)[:most]]
    if 0 < most < len(first):
        for _ in range(STEPS):
            centres = _improved(centres, points)
    return centres


def _improved(centres: Floats, points: Floats) -> Floats:
    """One step of k-means: each centre becomes the mean of the points nearest to it."""
    distance = np.einsum("md,md->m", centres, centres) - 2 * points @ centres.T
    nearest = distance.argmin(axis=1)
    order = np.argsort(nearest, kind="stable")
    cluster, first, count = np.unique(nearest[order], return_index=True, return_counts=True)
    moved = centres.copy()
    # A centre without points stays where it is.
    moved[cluster] = np.add.reduceat(points[order], first, axis=0) / count[:, None]
    return moved
