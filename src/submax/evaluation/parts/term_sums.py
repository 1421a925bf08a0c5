"""The terms of an estimate, and of the baseline from which it is subtracted, as sums."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.contracts.weighted_mean import SMALLEST_MEAN
from submax.evaluation.parts.moments import Moments, two_points


class TermSums(NamedTuple):
    """Sums over the columns u, z of an estimate and u, z of its baseline.

    A term of an estimate is y / z̄ with y = u + c z, where c is the ``centre``: sums of terms that
    are measured from a number near their mean lose no digits. z is 1 if the estimate is a mean
    (``ratio`` is then False). ``ends`` are the smallest and largest possible term of a mean, and
    the smallest and largest z of a ratio; None if only observed terms are known, which are
    ``observed``; ``apart`` are the observed differences from the baseline. ``blocks [B, 5]`` are
    the columns and the number of rows in each block of the bootstrap.
    """

    moments: Moments
    centre: float
    ratio: bool
    base_ratio: bool
    ends: tuple[float, float] | None
    base_ends: tuple[float, float] | None
    observed: tuple[float, float]
    apart: tuple[float, float]
    blocks: Floats | None

    @classmethod
    def of(
        cls, terms: Terms, baseline: Terms, centre: float, block: Integers | None, blocks: int
    ) -> "TermSums":
        """Return the sums of the terms of some rows; ``block [n]`` is the block of each row."""
        table = [*_columns(terms, centre), *_columns(baseline, centre)]
        sums = None
        if block is not None:
            # A column of ones counts the rows of a block.
            columns = [np.bincount(block, one, minlength=blocks) for one in (*table, None)]
            sums = np.stack(columns, axis=1).astype(np.float64)
        return cls(
            Moments.of(table, len(terms.numerator)),
            centre,
            terms.denominator is not None,
            baseline.denominator is not None,
            _ends(terms),
            _ends(baseline),
            _range(terms.numerator),
            _range(terms.numerator - baseline.numerator),
            sums,
        )

    def __add__(self, other: "TermSums") -> "TermSums":  # type: ignore[override]  # not of tuples
        return self._replace(
            moments=self.moments + other.moments,
            ends=_wider(self.ends, other.ends),
            base_ends=_wider(self.base_ends, other.base_ends),
            observed=_wider(self.observed, other.observed) or self.observed,
            apart=_wider(self.apart, other.apart) or self.apart,
            blocks=None
            if self.blocks is None or other.blocks is None
            else self.blocks + other.blocks,
        )

    def terms(self, interval: str, bounds: tuple[float, float], of_baseline: bool = False) -> Terms:
        """Return few terms that have the value and the intervals of all terms.

        ``bounds`` are the lowest and the highest reward.
        """
        place = 2 if of_baseline else 0
        ratio = self.base_ratio if of_baseline else self.ratio
        value, mean = self._value(place)
        reach = self._reach(place, bounds)
        if interval == "bernstein" and reach is None:
            reach = self.observed
        if self.blocks is not None:
            u, z = self.blocks[:, place], self.blocks[:, place + 1]
            above = u + self.centre * z
            return Terms(above, z if ratio else self.blocks[:, 4], reach)
        if not mean > 0:
            return Terms(np.full(2, np.nan), None, reach, counts=self._counts(np.full(2, 0.5)))
        _, variance, third = self.moments.central(self._influence(place))
        values, chance = two_points(value, variance, third)
        return Terms(values, None, reach, counts=self._counts(chance))

    def difference(self, interval: str, bounds: tuple[float, float]) -> Terms:
        """Return few terms that have the value and the intervals of the paired difference."""
        reach, base = self._reach(0, bounds), self._reach(2, bounds)
        ends = None if reach is None or base is None else (reach[0] - base[1], reach[1] - base[0])
        if interval == "bernstein" and ends is None:
            ends = self.apart
        value = self._value(0)[0] - self._value(2)[0]
        weights = self._influence(0) - self._influence(2)
        if self.blocks is not None:
            of_rows = self.blocks[:, 4]
            spread = self.blocks[:, :4] @ weights
            # The combination has a mean of its own, which is replaced by the difference.
            shift = value - float(weights @ self.moments.first) / self.moments.rows
            return Terms(spread + shift * of_rows, of_rows, ends)
        _, variance, third = self.moments.central(weights)
        values, chance = two_points(value, variance, third)
        return Terms(values, None, ends, counts=self._counts(chance))

    def error_of_difference(self) -> float:
        """Return the standard error of the paired difference."""
        weights = self._influence(0) - self._influence(2)
        _, variance, _ = self.moments.central(weights)
        count = self.moments.rows
        return float(np.sqrt(variance / (count - 1))) if count > 1 else float("inf")

    def _counts(self, chance: Floats) -> Floats:
        counts: Floats = self.moments.rows * chance
        return counts

    def _value(self, place: int) -> tuple[float, float]:
        """Return the estimate, and the mean of its denominator."""
        above, below = self.moments.first[place : place + 2]
        mean = float(below) / self.moments.rows
        return (self.centre + float(above / below) if below > 0 else float("nan")), mean

    def _influence(self, place: int) -> Floats:
        """Return the weights of the columns in v + (y − v z) / z̄, without the constant v."""
        value, mean = self._value(place)
        weights = np.zeros(4)
        if mean > 0:
            weights[place], weights[place + 1] = 1 / mean, (self.centre - value) / mean
        return weights

    def _reach(self, place: int, bounds: tuple[float, float]) -> tuple[float, float] | None:
        ends, ratio = (self.ends, self.ratio) if place == 0 else (self.base_ends, self.base_ratio)
        if ends is None or not ratio:
            return ends
        value, mean = self._value(place)
        products = np.outer([*ends, 0.0], [bounds[0] - value, bounds[1] - value])
        mean = max(mean, SMALLEST_MEAN)
        return value + float(products.min()) / mean, value + float(products.max()) / mean


def _columns(terms: Terms, centre: float) -> tuple[Floats, Floats | None]:
    """Return the columns u and z; z is None if it is 1."""
    if terms.denominator is None:
        return terms.numerator - centre, None
    return terms.numerator - centre * terms.denominator, terms.denominator


def _ends(terms: Terms) -> tuple[float, float] | None:
    if terms.denominator is not None:
        return float(terms.denominator.min()), float(terms.denominator.max())
    return terms.reach


def _range(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _wider(
    one: tuple[float, float] | None, other: tuple[float, float] | None
) -> tuple[float, float] | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one[0], other[0]), max(one[1], other[1])
