"""Random draws from tables of probabilities, for all replicas at once."""

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError

TOLERANCE = 1e-6
"""Largest deviation of a sum of probabilities from 1 that counts as a rounding error."""
LOTS = 6.0
"""``draw_lots`` divides n draws into this many times √n groups; docs/research gives the reason."""
LINEAR_SEARCH_SIZE = 32
"""Up to this many probabilities, comparing with all of them is faster than binary search."""


def draw(probabilities: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Draw ``count`` indices for each replica: ``[R, 1 or count, M] -> [R, count]``.

    One row of probabilities serves all draws of a replica; ``count`` rows give one draw each. A
    draw is the first index whose cumulative probability exceeds a uniform random number. The index
    is found by binary search, for all draws at once.
    """
    replicas, rows, size = probabilities.shape
    if rows == count and size <= LINEAR_SEARCH_SIZE:
        return _draw_each(probabilities, rng)
    halvings = (size - 1).bit_length()
    table = np.empty((replicas, rows, 1 << halvings))
    table[..., size:] = np.inf
    cumulated = np.cumsum(probabilities, axis=-1, out=table[..., :size])
    _check_sums(cumulated[..., -1])
    uniform = rng.random((replicas, count))
    # The sum may differ from 1 by rounding; scaling keeps the uniform numbers below it.
    uniform *= cumulated[..., -1]
    first = np.arange(0, table.size, 1 << halvings, dtype=np.int64).reshape(replicas, rows)
    place = first + np.zeros(uniform.shape, dtype=np.int64)
    entries = table.ravel()
    for bit in reversed(range(halvings)):
        passed = entries[(1 << bit) - 1 :].take(place) <= uniform
        place += passed.astype(np.int64) << bit
    return place - first


def draw_lots(probabilities: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Draw ``count`` indices for each replica in groups: ``[R, 1, M] -> [R, count]``.

    The draws are divided into about 6 √count groups at random positions, and all draws of a group
    have the same index. The indices of the groups are a systematic sample from the probabilities.
    At every position an index has the same probability as in ``draw``, but positions depend on each
    other: a batch tries fewer indices, each more often, and so learns more about these. Up to 36
    draws are groups of one draw each.

    >>> rng = np.random.default_rng(0)
    >>> drawn = draw_lots(np.full((1, 1, 500), 1 / 500), 900, rng)
    >>> len(np.unique(drawn))
    180
    """
    if count == 0:
        return np.empty((len(probabilities), 0), dtype=np.int64)
    lots = min(count, round(LOTS * count**0.5))
    cumulated = np.cumsum(probabilities[:, 0], axis=-1)
    total = cumulated[:, -1:]
    _check_sums(total)
    # Systematic sampling: an index gets its expected number of groups, rounded down or up.
    met = np.ceil(cumulated * (lots / total) - rng.random((len(total), 1))).astype(np.int64)
    # Rounding must not give a group to an index behind the last one with positive probability.
    met[cumulated == total] = lots
    np.minimum(met, lots, out=met)
    times = met.copy()
    times[:, 1:] -= met[:, :-1]
    index = np.repeat(np.tile(np.arange(met.shape[1]), len(met)), times.ravel())
    lot = index.reshape(len(met), lots)
    # Some groups are larger by one draw; the permutation decides which.
    drawn = rng.permuted(lot, axis=1)[:, np.arange(count) * lots // count]
    return rng.permuted(drawn, axis=1)


def _draw_each(probabilities: Floats, rng: np.random.Generator) -> Integers:
    """Draw one index per row: the number of cumulative probabilities up to a uniform number."""
    cumulated = probabilities.cumsum(axis=-1)
    total = cumulated[..., -1]
    _check_sums(total)
    uniform = rng.random(total.shape) * total
    passed = cumulated <= uniform[..., None]
    index: Integers = np.add.reduce(passed, axis=-1, dtype=np.int64)
    return index


def log_prob_of(probabilities: Floats, index: Integers) -> Floats:
    """Return the log-probability of each index: ``[R, 1 or n, M]`` and ``[R, n] -> [R, n]``."""
    replicas, rows, size = probabilities.shape
    first = np.arange(0, probabilities.size, size, dtype=np.int64).reshape(replicas, rows)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(probabilities.ravel().take(first + index))
    return found


def _check_sums(total: Floats) -> None:
    # A comparison with NaN is false, so NaN is refused, too.
    if not (total.size == 0 or np.abs(total - 1).max() < TOLERANCE):
        raise InputError(
            "the probabilities of all actions must sum to 1, and here they sum to "
            f"{total.min():.6g} up to {total.max():.6g}"
        )
