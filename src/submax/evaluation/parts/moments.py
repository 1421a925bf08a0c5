"""Sums of products of columns up to the third order, which can be added over parts of a log."""

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats


class Moments(NamedTuple):
    """Σ x, Σ x xᵀ and Σ x ⊗ x ⊗ x over the rows x of a table with K columns.

    From them follow the mean, the variance and the third cumulant of every linear combination of
    the columns.
    """

    rows: int
    first: Floats
    second: Floats
    third: Floats

    @classmethod
    def of(cls, columns: Sequence[Floats | None], count: int) -> "Moments":
        """Return the sums over ``count`` rows; a column that is None is 1 in every row.

        Products with 1 are sums of a lower order, which are not computed again.
        """
        varying = [one for one in columns if one is not None]
        width = len(varying)
        # Column 0 is the constant 1, so that sums of lower orders are part of those of the third.
        sums = np.empty((width + 1, width + 1, width + 1))
        sums[0, 0, 0] = count
        for one, column in enumerate(varying, start=1):
            _fill(sums, (0, 0, one), float(column.sum()))
            for two, other in enumerate(varying[one - 1 :], start=one):
                product = column * other
                _fill(sums, (0, one, two), float(product.sum()))
                for three, last in enumerate(varying[two - 1 :], start=two):
                    _fill(sums, (one, two, three), float(product @ last))
        numbers = np.cumsum([one is not None for one in columns])
        place = np.where([one is None for one in columns], 0, numbers)
        third = sums[np.ix_(place, place, place)]
        return cls(count, sums[0, 0, place], sums[0][np.ix_(place, place)], third)

    def __add__(self, other: "Moments") -> "Moments":  # type: ignore[override]  # not of tuples
        return Moments(
            self.rows + other.rows,
            self.first + other.first,
            self.second + other.second,
            self.third + other.third,
        )

    def central(self, weights: Floats) -> tuple[float, float, float]:
        """Return mean, variance and third cumulant of the combination Σ_k w_k x_k, per row.

        >>> Moments.of([np.array([0.0, 1.0, 5.0]), None], 3).central(np.array([1.0, 3.0]))[0]
        5.0
        """
        mean = float(weights @ self.first) / self.rows
        square = float(weights @ self.second @ weights) / self.rows
        cube = float(np.einsum("ijk,i,j,k->", self.third, weights, weights, weights)) / self.rows
        variance = max(square - mean**2, 0.0)
        return mean, variance, cube - 3 * mean * square + 2 * mean**3


def _fill(sums: Floats, place: tuple[int, int, int], value: float) -> None:
    """Set an element of a symmetric table, in all orders of its three numbers."""
    for one in permutations(place):
        sums[one] = value


def two_points(mean: float, variance: float, third: float) -> tuple[Floats, Floats]:
    """Return two values and their probabilities with this mean, variance and third cumulant.

    Intervals depend on the terms of an estimate only through these numbers, so that two terms, each
    counted as often as its probability says, have the interval of all of them.

    >>> values, chance = two_points(1.0, 4.0, 20.0)
    >>> np.round([chance @ values, chance @ (values - 1) ** 2, chance @ (values - 1) ** 3], 9)
    array([ 1.,  4., 20.])
    """
    if not variance > 0:
        return np.array([mean, mean]), np.array([0.5, 0.5])
    deviation = float(np.sqrt(variance))
    skewness = third / deviation**3
    root = float(np.hypot(2.0, skewness))
    # The rarer of both values, without the cancellation of (1 - skewness / root) / 2.
    rare = 2.0 / (root * (root + abs(skewness)))
    far, near = deviation * np.sqrt((1 - rare) / rare), deviation * np.sqrt(rare / (1 - rare))
    sign = 1.0 if skewness >= 0 else -1.0
    return mean + sign * np.array([-near, far]), np.array([1 - rare, rare])
