"""Draws from tables of probabilities, for all replicas at once."""

import numpy as np

from submax.core.arrays import Floats, Integers


def draw(probabilities: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Draw ``count`` indices for each replica: ``[R, 1 or count, M] -> [R, count]``.

    One row of probabilities is shared by all draws of a replica; ``count`` rows give one draw
    each. Inversion: the first index whose cumulated probability exceeds a uniform number. All
    rows are searched in one call, each shifted by its own number so that they stay in order.
    """
    replicas, rows, size = probabilities.shape
    cumulated = np.cumsum(probabilities, axis=-1)
    cumulated /= cumulated[..., -1:]
    last_possible = np.count_nonzero(cumulated < 1.0, axis=-1)
    shift = np.arange(replicas * rows, dtype=np.int64).reshape(replicas, rows)
    uniform = rng.random((replicas, count)) + shift
    cumulated += shift[..., None]
    found = np.searchsorted(cumulated.ravel(), uniform.ravel(), side="right")
    # Adding the shift can round a uniform number up into the next row.
    return np.minimum(found.reshape(replicas, count) - shift * size, last_possible)


def log_prob_of(probabilities: Floats, index: Integers) -> Floats:
    """Log-probability of each index: ``[R, 1 or n, M]`` and ``[R, n] -> [R, n]``."""
    with np.errstate(divide="ignore"):
        table = np.log(probabilities)
    replicas, rows, size = table.shape
    row = np.arange(replicas * rows, dtype=np.int64).reshape(replicas, rows)
    found: Floats = table.ravel()[row * size + index]
    return found
