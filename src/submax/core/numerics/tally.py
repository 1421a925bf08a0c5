"""Weighted counts, for all replicas at once."""

import numpy as np

from submax.core.arrays import Floats, Integers


def tally(index: Integers, weight: Floats, size: int) -> Floats:
    """Return the sum of the weights of each index: ``[R, n]`` and ``[R, n] -> [R, size]``.

    >>> tally(np.array([[0, 2, 2]]), np.array([[1.0, 1.0, 0.5]]), 3).tolist()
    [[1.0, 0.0, 1.5]]
    """
    replicas = index.shape[0]
    if not weight.all():
        # An absent row, of weight 0, may hold an index out of range.
        index = np.where(weight != 0, index, 0)
    rows = np.arange(replicas, dtype=np.int64)[:, None] * size
    counts = np.bincount((rows + index).ravel(), weight.ravel(), minlength=replicas * size)
    return counts.astype(np.float64, copy=False).reshape(replicas, size)
