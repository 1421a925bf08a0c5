"""Draws from tables of probabilities, for all replicas at once."""

import numpy as np

from submax.core.arrays import Floats, Integers


def draw(probabilities: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Draw ``count`` indices for each replica: ``[R, 1 or count, M] -> [R, count]``.

    One row of probabilities is shared by all draws of a replica; ``count`` rows give one draw
    each. Inversion: the first index whose cumulated probability exceeds a uniform number, found
    by halving, all draws at once.
    """
    replicas, rows, size = probabilities.shape
    width = 1 << (size - 1).bit_length()
    table = np.ones((replicas, rows, width))
    cumulated = np.cumsum(probabilities, axis=-1, out=table[..., :size])
    cumulated /= cumulated[..., -1:]
    first = np.arange(0, table.size, width, dtype=np.int64).reshape(replicas, rows)
    entries = table.ravel()
    uniform = rng.random((replicas, count))
    place = np.broadcast_to(first, uniform.shape).copy()
    step = width
    while step := step >> 1:
        passed = entries.take(place + (step - 1)) <= uniform
        place += passed.astype(np.int64) * step
    return place - first


def log_prob_of(probabilities: Floats, index: Integers) -> Floats:
    """Log-probability of each index: ``[R, 1 or n, M]`` and ``[R, n] -> [R, n]``."""
    replicas, rows, size = probabilities.shape
    row = np.arange(replicas * rows, dtype=np.int64).reshape(replicas, rows)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(probabilities.ravel().take(row * size + index))
    return found
