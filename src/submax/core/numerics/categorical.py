"""Draws from tables of probabilities, for all replicas at once."""

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError

TOLERANCE = 1e-6
LOTS = 6.0
"""A batch of n is given out in this many times √n lots; see docs/research."""
SMALL = 32
"""Up to so many numbers it is faster to look at all of them than to halve."""


def draw(probabilities: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Draw ``count`` indices for each replica: ``[R, 1 or count, M] -> [R, count]``.

    One row of probabilities is shared by all draws of a replica; ``count`` rows give one draw
    each. Inversion: the first index whose cumulated probability exceeds a uniform number, found
    by halving, all draws at once.
    """
    replicas, rows, size = probabilities.shape
    if rows == count and size <= SMALL:
        return _draw_each(probabilities, rng)
    halvings = (size - 1).bit_length()
    table = np.empty((replicas, rows, 1 << halvings))
    table[..., size:] = np.inf
    cumulated = np.cumsum(probabilities, axis=-1, out=table[..., :size])
    _check_sums(cumulated[..., -1])
    uniform = rng.random((replicas, count))
    # The sum need not be one to the last bit; a uniform number times the sum is always below it.
    uniform *= cumulated[..., -1]
    first = np.arange(0, table.size, 1 << halvings, dtype=np.int64).reshape(replicas, rows)
    place = first + np.zeros(uniform.shape, dtype=np.int64)
    entries = table.ravel()
    for bit in reversed(range(halvings)):
        passed = entries[(1 << bit) - 1 :].take(place) <= uniform
        place += passed.astype(np.int64) << bit
    return place - first


def draw_lots(probabilities: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Draw ``count`` indices for each replica in lots: ``[R, 1, M] -> [R, count]``.

    About 6 √count lots are spread evenly over the probabilities, and each is one index for as many
    draws, in random places. The probability of an index is in every place what it is in ``draw``,
    but the places depend on each other: a batch tries fewer indices, each more often, and says
    more about those. Up to 36 draws are lots of their own.

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
    # Cut at an offset plus 0, 1, 2, ...: an index is met as often as its share of lots, rounded.
    met = np.ceil(cumulated * (lots / total) - rng.random((len(total), 1))).astype(np.int64)
    # Rounding must not leave a lot to an index behind the last that has a probability.
    met[cumulated == total] = lots
    np.minimum(met, lots, out=met)
    times = met.copy()
    times[:, 1:] -= met[:, :-1]
    index = np.repeat(np.tile(np.arange(met.shape[1]), len(met)), times.ravel())
    lot = index.reshape(len(met), lots)
    # Some lots are longer by one: which, is drawn.
    drawn = rng.permuted(lot, axis=1)[:, np.arange(count) * lots // count]
    return rng.permuted(drawn, axis=1)


def _draw_each(probabilities: Floats, rng: np.random.Generator) -> Integers:
    """One draw from each of few numbers: count those that the uniform number has passed."""
    cumulated = probabilities.cumsum(axis=-1)
    total = cumulated[..., -1]
    _check_sums(total)
    uniform = rng.random(total.shape) * total
    passed = cumulated <= uniform[..., None]
    index: Integers = np.add.reduce(passed, axis=-1, dtype=np.int64)
    return index


def log_prob_of(probabilities: Floats, index: Integers) -> Floats:
    """Log-probability of each index: ``[R, 1 or n, M]`` and ``[R, n] -> [R, n]``."""
    replicas, rows, size = probabilities.shape
    first = np.arange(0, probabilities.size, size, dtype=np.int64).reshape(replicas, rows)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(probabilities.ravel().take(first + index))
    return found


def _check_sums(total: Floats) -> None:
    # Written so that NaN does not pass.
    if not (total.size == 0 or np.abs(total - 1).max() < TOLERANCE):
        raise InputError(
            "the probabilities of all actions must sum to 1, and here they sum to "
            f"{total.min():.6g} up to {total.max():.6g}"
        )
