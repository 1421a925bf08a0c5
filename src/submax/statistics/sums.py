"""The terms that an estimate averages, and sums of them that add up over batches of rows."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import msgspec
import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.numerics import pieces
from submax.statistics.intervals import Summed


def total(values: Floats, count: Floats | float = 1.0) -> float:
    """Return Σ_i c_i, the number of decisions; every row is one if the count is 1."""
    return float(np.broadcast_to(count, len(values)).sum())


def mean(values: Floats | float, count: Floats | float = 1.0) -> float:
    """Return Σ_i c_i v_i / Σ_i c_i; NaN without rows. A constant is its mean."""
    if not isinstance(values, np.ndarray):
        return values
    return float((count * values).sum() / total(values, count)) if len(values) else float("nan")


def quantiles(values: Floats, shares: Floats, count: Floats | float = 1.0) -> Floats:
    """Return quantiles over all decisions, with linear interpolation between neighbours.

    >>> quantiles(np.array([1.0, 5.0]), np.array([0.5, 1.0]), np.array([3.0, 1.0])).tolist()
    [1.0, 5.0]
    """
    order = np.argsort(values)
    ordered, ends = values[order], np.cumsum(np.broadcast_to(count, len(values))[order])
    place = shares * (ends[-1] - 1)
    below = np.floor(place)
    first, second = (
        ordered[np.minimum(np.searchsorted(ends, at, side="right"), len(ends) - 1)]
        for at in (below, np.minimum(below + 1, ends[-1] - 1))
    )
    found: Floats = first + (place - below) * (second - first)
    return found


class Range(NamedTuple):
    """The smallest and the largest of some numbers; a sum is the range of both together.

    Both can be arrays with an entry for each of several ranges.
    """

    low: Any
    high: Any

    @classmethod
    def of(cls, values: Floats | float) -> "Range":
        """Return the range of the numbers of an array, or of a constant."""
        return cls(float(np.min(values)), float(np.max(values)))

    def __add__(self, other: "Range") -> "Range":  # type: ignore[override]  # not of tuples
        return Range(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def joined(one: Any, other: Any) -> Any:
    """Return the sums over the rows of both: of numbers, arrays, and tables of them."""
    if one is None or other is None:
        return None
    if isinstance(one, dict):
        both = {key: joined(one[key], other[key]) for key in one.keys() & other.keys()}
        return {**one, **other, **both}
    if isinstance(one, list):
        return [joined(*pair) for pair in zip(one, other, strict=True)]
    return one + other


class Additive(msgspec.Struct, frozen=True):
    """Sums over the rows of a batch; those of two batches are added field by field.

    Fields that are named in ``shared`` are the same in all batches.
    """

    shared: ClassVar[tuple[str, ...]] = ()

    def __add__(self, other: Self) -> Self:
        names = [name for name in self.__struct_fields__ if name not in self.shared]
        sums = {name: joined(getattr(self, name), getattr(other, name)) for name in names}
        return msgspec.structs.replace(self, **sums)


class Terms(NamedTuple):
    """The rows of a batch in an estimate V = Σ_i c_i y_i / Σ_i c_i z_i + Σ_i c_i o_i / Σ_i c_i.

    y is the ``numerator [n]``, z the ``denominator`` and o the ``offset``, arrays or constants. c
    is the number of equal decisions that a row stands for, ``counts``. ``reach`` are the smallest
    and the largest possible y / z, None if they are not known. ``threshold`` is the weight
    threshold that was used, if any.
    """

    numerator: Floats
    denominator: Floats | float = 1.0
    reach: tuple[float, float] | None = None
    threshold: float | None = None
    counts: Floats | float = 1.0
    offset: Floats | float = 0.0

    @property
    def decisions(self) -> float:
        """The number of decisions."""
        return total(self.numerator, self.counts)

    @property
    def _ratio(self) -> tuple[float, float]:
        """ȳ / z̄ and z̄; NaN if the denominators add up to 0."""
        below = mean(self.denominator, self.counts) or float("nan")
        return mean(self.numerator, self.counts) / below, below

    @property
    def value(self) -> float:
        """The estimate; NaN if the denominators add up to 0."""
        return self._ratio[0] + mean(self.offset, self.counts)

    def influence(self) -> Floats:
        """Return the terms whose mean is, to first order, the estimate, ``[n]``.

        For a ratio v = ȳ / z̄ (delta method) these are v + (y_i − v z_i) / z̄ + o_i.
        """
        ratio, below = self._ratio
        return self.numerator / below + ratio * (1 - self.denominator / below) + self.offset


def sampled(terms: Terms, weight: Floats | float) -> Terms:
    """Return the terms of Σ_i s_i t_i / Σ_i s_i, where s_i is the sampling weight of a row.

    s_i is 1 / (probability with which the row was kept), so the sums estimate those of the
    whole log. A ratio Σ_i y_i / Σ_i z_i becomes Σ_i s_i y_i / Σ_i s_i z_i. The interval is that of
    the ratio: a row with a weight of 10 is one observation, not ten as with a count of 10.

    Reference: Hájek (1971), for the ratio of weighted sums.
    """
    return terms._replace(
        numerator=weight * terms.numerator,
        denominator=weight * terms.denominator,
        offset=weight * terms.offset / mean(weight, terms.counts),
    )


ROUNDING = 1e-14
"""Relative error of a difference of sums."""
ROUNDING_OF_ZERO = 1e-12
"""A value below this share of the centre is one of 0 that was rounded."""
MOMENT_ROWS = 1 << 14
"""Rows whose products are in memory together: they stay in the cache."""


class Moments(Additive, frozen=True):
    """Σ c x ⊗ x ⊗ x over the rows (1, x), where x has K columns: ``sums [1 + K, 1 + K, 1 + K]``.

    The first column is 1, so the sums of lower orders, Σ c, Σ c x and Σ c x xᵀ, are among them.
    From them follow the mean, the variance and the third cumulant of every linear combination of
    the columns.
    """

    sums: Floats

    @classmethod
    def of(
        cls, columns: Sequence[Floats | float], rows: int, counts: Floats | float = 1.0
    ) -> "Moments":
        """Return the sums over some rows; a column may be a constant."""
        varying = [one for one in columns if isinstance(one, np.ndarray)]
        width, counts = len(varying) + 1, np.broadcast_to(counts, rows)
        first, second = np.triu_indices(width)
        third = np.zeros((len(first), width))
        for piece in pieces(rows, MOMENT_ROWS):
            count = counts[piece]
            x = np.stack([np.ones(len(count)), *(one[piece] for one in varying)])
            third += ((count * x)[first] * x[second]) @ x.T
        sums = np.empty((width, width, width))
        sums[first, second] = sums[second, first] = third
        # A constant column is a multiple of the column of ones.
        constant = np.array([True, *(not isinstance(one, np.ndarray) for one in columns)])
        places = np.where(constant, 0, np.cumsum(~constant))
        scale = np.array([1.0, *(1.0 if isinstance(one, np.ndarray) else one for one in columns)])
        expanded = sums[np.ix_(places, places, places)]
        return cls(expanded * scale[:, None, None] * scale[:, None] * scale)

    @property
    def decisions(self) -> float:
        """The number of decisions, Σ c."""
        return float(self.sums[0, 0, 0])

    @property
    def first(self) -> Floats:
        """The sums Σ c x, ``[K]``."""
        return self.sums[0, 0, 1:]

    def central(self, weights: Sequence[float] | Floats) -> tuple[float, float, float]:
        """Return mean, variance and third central moment of the combination Σ_k w_k x_k.

        >>> Moments.of([np.array([0.0, 1.0, 5.0]), 1.0], 3).central([1.0, 3.0])[0]
        5.0
        """
        w, count, sums = np.asarray(weights), self.decisions, self.sums[1:, 1:, 1:]
        second = self.sums[0, 1:, 1:]
        average = float(w @ self.first) / count
        square = float(w @ second @ w) / count
        spread = square - average**2
        # A difference of sums that rounding explains is none: all terms are equal.
        largest = float(np.abs(w) @ np.abs(second) @ np.abs(w)) / count
        if not spread > ROUNDING * largest:
            return average, 0.0 * spread, 0.0 * spread
        cube = float(np.einsum("ijk,i,j,k->", sums, w, w, w)) / count
        return average, spread, cube - 3 * average * square + 2 * average**3


class Units(NamedTuple):
    """What is independent: rows in blocks of time, or clusters. ``number [n]`` is that of each row.

    ``total`` is the number of units of the whole log. Without a number no sums over units are kept.
    """

    number: Integers | None = None
    total: int = 0
    clusters: bool = False

    def rows(self, mask: Booleans) -> "Units":
        """Return the units of some of the rows."""
        return self if self.number is None else self._replace(number=self.number[mask])


COLUMNS = 3
"""Columns of an estimate: u = y − c z, z and o, where c is a number near the value."""


class TermSums(Additive, frozen=True):
    """Sums over the columns of an estimate, and of the baseline from which it is subtracted.

    Terms are measured from the ``centre``, a number near the value, so sums lose no digits.
    ``sides`` are, for both, the ranges of y / z (None if not known), of z, and of o. ``table`` has
    the sums of all columns and the decisions of each unit: of clusters, or of blocks of rows.
    """

    shared = ("centre", "clusters", "threshold")

    moments: Moments
    centre: float
    sides: list[list[Any]]
    table: Floats | None
    clusters: bool
    threshold: float | None

    @classmethod
    def of(
        cls,
        terms: Terms,
        baseline: Terms | None = None,
        centre: float = 0.0,
        units: Units = Units(),  # noqa: B008 - it is a constant
    ) -> "TermSums":
        """Return the sums of the terms of some rows."""
        rows, number, table = len(terms.numerator), units.number, None
        counts = np.broadcast_to(terms.counts, rows)
        columns, sides = list[Floats | float](), list[list[Any]]()
        for one in (terms,) if baseline is None else (terms, baseline):
            z, o = one.denominator, one.offset
            columns += [one.numerator - centre * z, z, o]
            sides.append([one.reach and Range(*one.reach), Range.of(z), Range.of(o)])
        if number is not None:
            sums = [np.bincount(number, counts * one, units.total) for one in (*columns, 1.0)]
            table = np.stack(sums, axis=1).astype(np.float64)
        moments = Moments.of(columns, rows, counts)
        return cls(moments, centre, sides, table, units.clusters, terms.threshold)

    @property
    def crowding(self) -> float:
        """Σ n_g² / n over clusters, the design effect if rows of a cluster are equal; else 1."""
        if self.table is None or not self.clusters:
            return 1.0
        return float((self.table[:, -1] ** 2).sum() / self.table[:, -1].sum())

    def estimate(self) -> Summed:
        """Return the estimate and what its intervals depend on."""
        return self._summed(*self._side(0))

    def difference(self) -> Summed:
        """Return the paired difference from the baseline and what its intervals depend on."""
        value, weights, mine = self._side(0)
        other, baseline, base = self._side(1)
        reach = mine and base and Range(mine.low - base.high, mine.high - base.low)
        return self._summed(value - other, weights - baseline, reach)

    def _side(self, side: int) -> tuple[float, Floats, Range | None]:
        """Return the value of an estimate, and the weights of the columns in its terms.

        The terms are v + (y − v z) / z̄ + o, where v is the value without the offset. The range
        is that of the possible terms, None if it is not known.
        """
        first, count, place = self.moments.first, self.moments.decisions, COLUMNS * side
        (u, z, o), weights = map(float, first[place : place + COLUMNS]), np.zeros(len(first))
        if not z > 0:
            return float("nan"), weights + np.nan, None
        ratio, below = u / z, z / count
        weights[place : place + COLUMNS] = 1 / below, -ratio / below, 1.0
        value = self.centre + ratio
        if abs(value) < ROUNDING_OF_ZERO * abs(self.centre):
            # All terms are 0, and the sums of their distances from the centre are rounded.
            value = 0.0
        reach, denominator, offset = self.sides[side]
        if reach is not None:
            products = np.outer([*denominator, 0.0], [end - value for end in reach]) / below
            low, high = value + float(products.min()), value + float(products.max())
            reach = Range(low + offset.low, high + offset.high)
        return value + o / count, weights, reach

    def _summed(self, value: float, weights: Floats, reach: Range | None) -> Summed:
        count = self.moments.decisions
        average = spread = third = float("nan")
        if not np.isnan(weights).any():
            average, spread, third = self.moments.central(weights)
        error = float(np.sqrt(spread / (count - 1))) if count > 1 else float("inf")
        found = Summed(value, count, error, third / count**2, reach)
        if self.table is None:
            return found
        table = self.table[self.table[:, -1] > 0]
        sizes = table[:, -1]
        deviation = table[:, :-1] @ np.nan_to_num(weights) - average * sizes
        if self.clusters:
            return _clustered(found, spread, sizes, deviation)
        return found._replace(sizes=sizes, deviation=deviation)


SMALLEST_SHARE = 1e-300
"""Lower bound of 1 − n_g / n, so a division by 0 does not occur if there is one cluster."""


def _clustered(rows: Summed, spread: float, sizes: Floats, deviation: Floats) -> Summed:
    """Return an estimate whose clusters are independent, and not its rows.

    With G clusters and n rows in all, the term of a cluster is V + (G / n) Σ_i (t_i − V) over its
    rows. The variance of V is Σ_g D_g² / (1 − n_g / n) / n², D_g the sum over the n_g rows of a
    cluster: CR2, unbiased if rows are independent. The largest possible term is that of the largest
    cluster.

    The degrees of freedom are those that the variance has if two rows of a cluster have the
    correlation ρ, (tr B)² / tr B² where B is the covariance of D_g / √(1 − n_g / n). ρ follows from
    the design effect, var(clusters) / var(independent rows) = 1 + ρ (Σ n_g² / n − 1).

    One more reward is rarely a whole cluster of rewards: ``unseen`` counts as many rows as the
    design effect. It is 1 if the rows of a cluster are independent, and the size of a cluster if
    they are equal. Without any variance it is not known, and the largest cluster is assumed.

    Reference: Liang and Zeger (1986); Bell and McCaffrey (2002) for CR2 and the degrees of freedom,
    Imbens and Kolesár (2016) for those with ρ; Kish (1965), Survey sampling, for the design effect.
    """
    clusters, value, count = len(sizes), rows.value, rows.decisions
    scale, share = clusters / count, sizes / count
    free = np.where(share < 1, 1 / np.maximum(1 - share, SMALLEST_SHARE), 1.0)
    variance = float(free @ deviation**2) / count**2
    independent, most = count * spread, float(sizes.max())
    effect = float(deviation @ deviation) / independent if independent > 0 else np.inf
    reach = unseen = None
    if rows.reach is not None:
        reach, unseen = (
            (value + times * (rows.reach[0] - value), value + times * (rows.reach[1] - value))
            for times in (scale * most, scale * min(max(effect, 1.0), most))
        )
    return rows._replace(
        decisions=float(clusters),
        error=float(np.sqrt(variance)) if clusters > 1 else float("inf"),
        third=float(np.sum(deviation**3)) / count**3,
        reach=reach,
        unseen=unseen,
        freedom=_freedom(sizes, free, effect),
        sizes=np.ones(clusters),
        deviation=scale * deviation,
    )


def _freedom(sizes: Floats, free: Floats, effect: float) -> float:
    """Return (tr B)² / tr B² for clusters of these sizes, ``free`` being 1 / (1 − n_g / n)."""
    count, squares = float(sizes.sum()), float(sizes @ sizes)
    if len(sizes) < 2:
        return 1.0
    correlation = 0.0
    if np.isfinite(effect) and squares > count:
        correlation = min(max((effect - 1) / (squares / count - 1), 0.0), 1.0)
    h = sizes / count
    v = sizes + correlation * sizes * (sizes - 1)
    whole = float(v.sum())
    # Cov(D_g, D_k) = v_g 1(g = k) − h_g v_k − h_k v_g + h_g h_k Σ v.
    own = h * (h * whole - 2 * v)
    trace = float(free @ (v + own))
    hh, vv, hv = float(free @ h**2), float(free @ v**2), float(free @ (h * v))
    square = float(free**2 @ (v**2 + 2 * v * own))
    square += 2 * hh * vv + (hh * whole) ** 2 + 2 * hv**2 - 4 * whole * hh * hv
    return max(trace**2 / square, 1.0) if square > 0 else 1.0
