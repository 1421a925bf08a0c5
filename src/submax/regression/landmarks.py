"""Points around which kernels are laid."""

import numpy as np

from submax.core.arrays import Floats

STEPS = 5
"""Steps of k-means. Centres need to cover the points, not to be the best ones."""


def chosen_landmarks(points: Floats, most: int, rng: np.random.Generator) -> Floats:
    """Up to ``most`` landmarks for points ``[n, D]``.

    If there are at most ``most`` different points, the landmarks are these points. Otherwise they
    are the centres of clusters, found by k-means from points that were picked at random.

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
    # A centre that no point is nearest to stays where it is.
    moved[cluster] = np.add.reduceat(points[order], first, axis=0) / count[:, None]
    return moved
