"""Sums over decisions, and the estimates that follow from them."""

import math
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats


class DecisionSums(NamedTuple):
    """Columns of sums, with one value for each cell of a table.

    ``decisions`` are counted when they are made. All other columns are about decisions that have
    matured: ``rewarded`` counts those that got a reward, ``reward`` and ``squares`` are the sums of
    the rewards r and of r². With the weight w, which is 1 / propensity for plain arms and 1 for
    slots, ``weight`` is the sum of w and ``weight_squares`` of w².
    """

    decisions: Floats
    matured: Floats
    rewarded: Floats
    reward: Floats
    squares: Floats
    weight: Floats
    weight_squares: Floats

    @classmethod
    def of_table(cls, table: Floats) -> Self:
        """The columns of an array that has a row for each cell."""
        return cls(*table.T)

    @property
    def mean(self) -> Floats:
        """The mean reward of each cell; NaN without a decision that has matured."""
        return _ratio(self.reward, self.matured)

    @property
    def standard_error(self) -> Floats:
        """The standard error of ``mean``; NaN with fewer than two decisions."""
        spread = np.maximum(self.squares - self.reward * self.mean, 0.0)
        return np.sqrt(_ratio(spread, self.matured * np.maximum(self.matured - 1, 0.0)))

    @property
    def effective(self) -> Floats:
        """The number of equally weighted decisions that would be as informative (Kish 1965)."""
        return _ratio(self.weight**2, self.weight_squares)


COLUMNS = len(DecisionSums._fields)
"""Columns of the array in which sums are kept."""
SERIES = [0, 1, 3]
"""The columns decisions, matured and reward, if only those are kept."""


def made(count: int) -> Floats:
    """The columns of sums of so many decisions when they are made, ``[COLUMNS, n]``."""
    columns = np.zeros((COLUMNS, count))
    columns[0] = 1.0
    return columns


def matured(reward: Floats, rewarded: Booleans, weight: Floats) -> Floats:
    """The columns of sums of decisions when they mature, ``[COLUMNS, n]``."""
    columns = np.empty((COLUMNS, len(reward)))
    sums = DecisionSums(*columns)
    sums.decisions[:], sums.matured[:], sums.rewarded[:] = 0.0, 1.0, rewarded
    sums.reward[:], sums.squares[:] = reward, reward**2
    sums.weight[:], sums.weight_squares[:] = weight, weight**2
    return columns


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """The ratio, NaN where the denominator is 0."""
    found: Floats = np.full(np.shape(numerator), math.nan)
    np.divide(numerator, denominator, out=found, where=denominator > 0)
    return found
