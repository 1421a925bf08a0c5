"""Random draws, counts and roots, for all replicas at once; and rows in pieces."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError

TOLERANCE = 1e-6
"""Largest deviation of a sum of probabilities from 1 that counts as a rounding error."""
GROUPS = 6.0
"""A batch of n draws has this many times √n groups; chosen on tuning seeds, see
docs/research/README.md."""
LINEAR_SEARCH_SIZE = 32
"""If a row has at most this many probabilities and is used for one draw, comparing a uniform number
with all cumulative probabilities is faster than binary search."""


def draw(probabilities: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Draw ``count`` indices for each replica: ``[R, 1 or count, M] -> [R, count]``.

    A single row of probabilities is used for all draws of a replica; of ``count`` rows, each is
    used for one draw. A draw is the first index whose cumulative probability exceeds a uniform
    random number. Raise an ``InputError`` unless every row sums to 1.
    """
    replicas, rows, size = probabilities.shape
    if rows == count and size <= LINEAR_SEARCH_SIZE:
        rising = probabilities.cumsum(axis=-1)
        _check_sums(rising[..., -1])
        passed = rising <= (rng.random(rising.shape[:2]) * rising[..., -1])[..., None]
        return np.add.reduce(passed, axis=-1, dtype=np.int64)
    # Binary search for all draws at once, in rows that are padded to a power of two.
    halvings = (size - 1).bit_length()
    table = np.empty((replicas, rows, 1 << halvings))
    table[..., size:] = np.inf
    cumulated = np.cumsum(probabilities, axis=-1, out=table[..., :size])
    _check_sums(cumulated[..., -1])
    uniform = rng.random((replicas, count))
    # The sum may differ from 1 by rounding; scaling keeps the uniform numbers below it.
    uniform *= cumulated[..., -1]
    first = np.arange(0, table.size, 1 << halvings, dtype=np.int64).reshape(replicas, rows)
    index = first + np.zeros(uniform.shape, dtype=np.int64)
    entries = table.ravel()
    for bit in reversed(range(halvings)):
        passed = entries[(1 << bit) - 1 :].take(index) <= uniform
        index += passed.astype(np.int64) << bit
    return index - first


def draw_grouped(probabilities: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Draw ``count`` indices for each replica, in groups: ``[R, 1, M] -> [R, count]``.

    The draws are divided at random into about 6 √count groups, and all draws of a group get the
    same index. By systematic sampling each index gets its expected number of groups, rounded up or
    down at random. A single draw has the same probabilities as in ``draw``, but of many indices a
    batch tries fewer, each more often, and so learns more about those. Up to 36 draws are groups of
    one. Raise an ``InputError`` unless every row sums to 1.

    >>> rng = np.random.default_rng(0)
    >>> drawn = draw_grouped(np.full((1, 1, 500), 1 / 500), 900, rng)
    >>> len(np.unique(drawn))
    180
    """
    if count == 0:
        return np.empty((len(probabilities), 0), dtype=np.int64)
    groups = min(count, round(GROUPS * count**0.5))
    cumulated = np.cumsum(probabilities[:, 0], axis=-1)
    total = cumulated[:, -1:]
    _check_sums(total)
    # Systematic sampling: the points U, U + 1, … with a random offset U in [0, 1) fall on intervals
    # whose lengths are the expected numbers of groups. `points` counts those up to each index.
    offset = rng.random((len(total), 1))
    points = np.ceil(cumulated * (groups / total) - offset).astype(np.int64)
    # If the last indices have probability 0, rounding errors must not give them a group.
    points[cumulated == total] = groups
    np.minimum(points, groups, out=points)
    times = points.copy()
    times[:, 1:] -= points[:, :-1]
    index = np.repeat(np.tile(np.arange(points.shape[1]), len(points)), times.ravel())
    group = index.reshape(len(points), groups)
    # Some groups are longer by one draw; which ones is random.
    drawn = rng.permuted(group, axis=1)[:, np.arange(count) * groups // count]
    return rng.permuted(drawn, axis=1)


def log_prob_of(probabilities: Floats, index: Integers) -> Floats:
    """Return the log-probability of each index: ``[R, 1 or n, M]`` and ``[R, n] -> [R, n]``.

    If the probability is 0, this is −∞.
    """
    replicas, rows, size = probabilities.shape
    first = np.arange(0, probabilities.size, size, dtype=np.int64).reshape(replicas, rows)
    with np.errstate(divide="ignore"):
        result: Floats = np.log(probabilities.ravel().take(first + index))
    return result


def _check_sums(total: Floats) -> None:
    # A comparison with NaN is false, so NaN is refused, too.
    if not (total.size == 0 or np.abs(total - 1).max() < TOLERANCE):
        ends = dict.fromkeys(f"{end:.6g}" for end in (total.min(), total.max()))
        raise InputError(
            f"the probabilities of all actions must sum to 1, but they sum to {' to '.join(ends)}"
        )


STEPS = 60
"""Largest number of iterations: enough bisections for the precision of a float64."""
WALK = 2.0
"""Length of a step at a point where the slope is not negative, so Newton's step is useless."""
SMALLEST_SLOPE = 1e-150
"""Absolute slopes below this count as this slope, so a Newton step does not divide by 0."""


def decreasing_root(
    function: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    lowest: Floats,
    highest: Floats,
    step_tolerance: float,
    value_tolerance: float = 0.0,
) -> Floats:
    """Return the point where a decreasing function crosses 0, for each entry of an array.

    ``function`` returns values and slopes. The method is Newton's, inside a bracket from ``lowest``
    to ``highest`` that shrinks at every step. At a point where the slope is not negative, the step
    has the fixed length ``WALK``; a step that would leave the bracket is replaced by bisection.
    An entry is final after a step shorter than ``step_tolerance``, or from a point where the
    absolute value of the function was at most ``value_tolerance``, so it depends on no other.

    >>> place = np.array([0.5, 3.0])
    >>> decreasing_root(lambda x: (2 - x**3, -3 * x**2), place, 0 * place, 9 + place, 1e-3).round(5)
    array([1.25992, 1.25992])
    """
    point, active = start, np.array(True)
    for _ in range(STEPS):
        value, slope = function(point)
        lowest, highest = np.where(value > 0, point, lowest), np.where(value < 0, point, highest)
        falls = slope < 0
        moved = point + np.where(
            falls, value / np.maximum(-slope, SMALLEST_SLOPE), WALK * np.sign(value)
        )
        # A Newton step that reaches or leaves the bracket is replaced by bisection.
        down, up = (moved <= lowest) & (moved < point), (moved >= highest) & (moved > point)
        moved = np.where(down | up, (lowest + highest) / 2, moved)
        moved = np.where(active, moved, point)
        active = (np.abs(moved - point) >= step_tolerance) & (np.abs(value) > value_tolerance)
        point = moved
        if not active.any():
            break
    return point


def highest(score: Floats, tolerance: float | Floats = 0.0) -> Floats:
    """Return equal probabilities for the highest scores along the last axis, 0 for all others.

    Scores that are lower by at most the ``tolerance`` tie with the highest.

    >>> highest(np.array([1.0, 3.0, 3.0])).tolist()
    [0.0, 0.5, 0.5]
    """
    best = score >= score.max(axis=-1, keepdims=True) - tolerance
    return best / best.sum(axis=-1, keepdims=True)


TIES = 1e-9
"""Probabilities that differ by less than this are tied for the greedy action."""


def sharpened(table: Floats, temperature: float) -> Floats:
    """Return probabilities to the power of 1 / temperature, normalized; 0 is greedy: ``[..., M]``.

    Tied actions share the probability of the greedy one.

    >>> sharpened(np.array([[0.2, 0.8]]), 0.5).round(3).tolist()
    [[0.059, 0.941]]
    """
    if temperature == 0:
        return highest(table, TIES)
    with np.errstate(divide="ignore"):
        score = np.log(table) / temperature
    power = np.exp(score - score.max(axis=-1, keepdims=True))
    return power / power.sum(axis=-1, keepdims=True)


def where_chosen(chosen: Booleans, new: Any, old: Any) -> Any:
    """Return ``new`` in the replicas ``chosen [R]``, and ``old`` elsewhere, if there is any.

    Both are arrays, or tuples of arrays, in which the axis of replicas is the first one.
    """
    if old is None or new is None:
        return new
    if isinstance(new, tuple):
        parts = [where_chosen(chosen, *pair) for pair in zip(new, old, strict=True)]
        return getattr(type(new), "_make", tuple)(parts)
    return np.where(chosen.reshape(-1, *[1] * (new.ndim - 1)), new, old) if old.size else new


def standard_error(values: Floats) -> float:
    """Return the sample standard deviation divided by √n; NaN for fewer than two values."""
    if len(values) < 2:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))


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


PIECE_ROWS = 1 << 17
"""Rows that are in memory together. The number does not change any result beyond rounding."""


def pieces(rows: int, step: int = PIECE_ROWS) -> Iterator[slice]:
    """Yield slices of rows that are in memory together.

    >>> list(pieces(3))
    [slice(0, 3, None)]
    """
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The constants of SplitMix64 (Steele, Lea and Flood, 2014), which mixes the bits of a number."""


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose bits are mixed, so those of successive numbers look independent."""
    # Sums and products of arrays of integers are taken modulo 2⁶⁴, as they are meant here.
    bits = numbers + np.uint64(STEP)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(FIRST)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(SECOND)
    return bits ^ (bits >> np.uint64(31))
