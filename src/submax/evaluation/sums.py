"""The terms that an estimate averages, and sums of them that add up over batches of rows."""

from collections.abc import Sequence
from itertools import combinations_with_replacement, permutations
from typing import Any, ClassVar, NamedTuple, Self

import msgspec
import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.evaluation.intervals import Blocks, Summed


def total(values: Floats, count: Floats | None) -> float:
    """Return Σ_i c_i, the number of decisions; each row is one decision if there are no counts."""
    return float(len(values) if count is None else count.sum())


def mean(values: Floats, count: Floats | None) -> float:
    """Return Σ_i c_i v_i / Σ_i c_i; NaN without rows."""
    if not len(values):
        return float("nan")
    return float(values.mean() if count is None else count @ values / count.sum())


def variance(values: Floats, count: Floats | None) -> float:
    """Return the variance over all decisions, with the divisor Σ_i c_i."""
    if count is None:
        return float(values.var())
    distance = values - mean(values, count)
    return float(count @ distance**2 / count.sum())


def error_of_mean(values: Floats, count: Floats | None) -> float:
    """Return s / √n over n decisions, with s² of divisor n; 0 for a single decision."""
    return float(np.sqrt(variance(values, count) / total(values, count)))


def standard_error_of_mean(values: Floats, count: Floats | None = None) -> float:
    """Return s / √n over n decisions, with s² of divisor n − 1; infinite for a single one."""
    decisions = total(values, count)
    return float(np.sqrt(variance(values, count) / (decisions - 1))) if decisions > 1 else np.inf


def some(count: Floats | None, which: Booleans) -> Floats | None:
    """Return the counts of some rows."""
    return None if count is None else count[which]


def quantiles(values: Floats, shares: Floats, count: Floats | None) -> Floats:
    """Return quantiles over all decisions, with linear interpolation between neighbours.

    >>> quantiles(np.array([1.0, 5.0]), np.array([0.5, 1.0]), np.array([3.0, 1.0])).tolist()
    [1.0, 5.0]
    """
    if count is None:
        plain: Floats = np.quantile(values, shares)
        return plain
    order = np.argsort(values, kind="stable")
    ordered, ends = values[order], np.cumsum(count[order])
    place = np.asarray(shares) * (ends[-1] - 1)
    below = np.floor(place)
    first, second = (
        ordered[np.minimum(np.searchsorted(ends, at, side="right"), len(ends) - 1)]
        for at in (below, np.minimum(below + 1, ends[-1] - 1))
    )
    found: Floats = first + (place - below) * (second - first)
    return found


class Range(NamedTuple):
    """The smallest and the largest of some numbers; a sum is the range of both together."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Floats) -> "Range":
        """Return the range of the numbers of an array."""
        return cls(float(values.min()), float(values.max()))

    def __add__(self, other: "Range") -> "Range":  # type: ignore[override]  # not of tuples
        return Range(min(self.low, other.low), max(self.high, other.high))


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
        return type(self)(
            *(
                getattr(self, name)
                if name in self.shared
                else joined(getattr(self, name), getattr(other, name))
                for name in self.__struct_fields__
            )
        )


class Terms(NamedTuple):
    """The rows of a batch in an estimate V = Σ_i c_i y_i / Σ_i c_i z_i + Σ_i c_i o_i / Σ_i c_i.

    y is the ``numerator [n]``, z the ``denominator`` (1 if it is None), o the ``offset`` (0 if it
    is None), and c the number of equal decisions that a row stands for, ``counts`` (1 if it is
    None). ``reach`` are the smallest and the largest possible y / z, None if they are not known.
    ``threshold`` is the weight threshold that was used, if any, and ``without_threshold`` are the
    terms without it.
    """

    numerator: Floats
    denominator: Floats | None = None
    reach: tuple[float, float] | None = None
    threshold: float | None = None
    without_threshold: "Terms | None" = None
    counts: Floats | None = None
    offset: Floats | None = None

    @property
    def decisions(self) -> float:
        """The number of decisions."""
        return total(self.numerator, self.counts)

    @property
    def value(self) -> float:
        """The estimate; NaN if the denominators add up to 0."""
        below = 1.0 if self.denominator is None else mean(self.denominator, self.counts)
        above = mean(self.numerator, self.counts)
        more = 0.0 if self.offset is None else mean(self.offset, self.counts)
        return above / below + more if below > 0 else float("nan")

    def influence(self) -> Floats:
        """Return the terms whose mean is, to first order, the estimate, ``[n]``.

        For a ratio v = ȳ / z̄ (delta method) these are v + (y_i − v z_i) / z̄ + o_i.
        """
        terms = self.numerator
        if self.denominator is not None:
            below = mean(self.denominator, self.counts)
            if not below > 0:
                return np.full(len(self.numerator), np.nan)
            value = mean(self.numerator, self.counts) / below
            terms = value + (self.numerator - value * self.denominator) / below
        return terms if self.offset is None else terms + self.offset

    def summed(self, cluster: Integers | None = None) -> Summed:
        """Return the estimate of these rows alone, with blocks of single rows, or by cluster."""
        units = Units.of_rows(len(self.numerator))
        if cluster is not None:
            units = Units(cluster, int(cluster.max()) + 1, clusters=True)
        value = self.value
        centre = value if np.isfinite(value) else 0.0
        return TermSums.of(self, centre=centre, units=units).estimate()


SMALLEST_EIGENVALUE = 1e-10
"""Relative size below which a direction of the controls is taken to be empty."""


class Adjustment(NamedTuple):
    """Offsets −θ · z_i of the terms, with controls z_i = (w_i − 1) (1, x_i).

    x_i are covariates that were known before the decision, such as the visits of the week before,
    standardized by ``centre`` and ``spread``. Weights of a policy have the mean 1 given x, so
    E[z] = 0 and the adjustment does not change the expectation, up to order 1/n; θ is the
    regression of the terms on z, which removes the part of the noise that x explains. For the
    difference of two policies this is CUPED. If the log is a sample, z_i is multiplied by the
    sampling weight of the row, over its mean ``kept``.

    Reference: Deng, Xu, Kohavi and Walker (2013), Improving the sensitivity of online controlled
    experiments by utilizing pre-experiment data.
    """

    centre: Floats
    spread: Floats
    kept: float
    theta: Floats

    @classmethod
    def of(
        cls, terms: Terms, weight: Floats, covariates: Floats, sampling: Floats | None = None
    ) -> "Adjustment":
        """Return the adjustment that is fitted to terms, weights and ``covariates [n, C]``."""
        influence, counts = terms.influence(), terms.counts
        rows = len(influence)
        share = np.full(rows, 1 / rows) if counts is None else counts / counts.sum()
        centre = share @ covariates
        spread = np.sqrt(share @ (covariates - centre) ** 2)
        kept = 1.0 if sampling is None else float(share @ sampling)
        found = cls(centre, np.where(spread > 0, spread, 1.0), kept, np.zeros(0))
        controls = found._controls(weight, covariates, sampling)
        distance = controls - share @ controls
        gram = distance.T @ (share[:, None] * distance)
        moment = distance.T @ (share * (influence - share @ influence))
        theta = np.linalg.pinv(gram, rcond=SMALLEST_EIGENVALUE, hermitian=True) @ moment
        return found._replace(theta=theta)

    def adjusted(
        self, terms: Terms, weight: Floats, covariates: Floats, sampling: Floats | None = None
    ) -> Terms:
        """Return the terms of some rows with the offsets added."""
        offset = -self._controls(weight, covariates, sampling) @ self.theta
        return terms._replace(offset=offset if terms.offset is None else terms.offset + offset)

    def _controls(self, weight: Floats, covariates: Floats, sampling: Floats | None) -> Floats:
        standardized = (covariates - self.centre) / self.spread
        controls: Floats = (weight - 1)[:, None] * np.column_stack(
            [np.ones(len(weight)), standardized]
        )
        return controls if sampling is None else controls * (sampling / self.kept)[:, None]


def sampled(terms: Terms, weight: Floats) -> Terms:
    """Return the terms of Σ_i s_i t_i / Σ_i s_i, where s_i is the sampling weight of a row.

    s_i is 1 / (probability with which the row was kept), so the sums estimate those of the
    whole log. A ratio Σ_i y_i / Σ_i z_i becomes Σ_i s_i y_i / Σ_i s_i z_i. The interval is that of
    the ratio: a row with a weight of 10 is one observation, not ten as with a count of 10.

    Reference: Hájek (1971), for the ratio of weighted sums.
    """
    plain = terms.without_threshold
    offset = terms.offset
    return terms._replace(
        numerator=weight * terms.numerator,
        denominator=weight if terms.denominator is None else weight * terms.denominator,
        without_threshold=None if plain is None else sampled(plain, weight),
        offset=None if offset is None else weight * offset / mean(weight, terms.counts),
    )


ROUNDING = 1e-14
"""Relative error of a difference of sums."""


class Moments(Additive, frozen=True):
    """Σ c, Σ c x, Σ c x xᵀ and Σ c x ⊗ x ⊗ x over the rows x of a table with K columns.

    From them follow the mean, the variance and the third cumulant of every linear combination of
    the columns.
    """

    decisions: float
    first: Floats
    second: Floats
    third: Floats

    @classmethod
    def of(
        cls, columns: Sequence[Floats | None], rows: int, counts: Floats | None = None
    ) -> "Moments":
        """Return the sums over some rows; a column that is None is 1 in every row.

        Products with 1 are sums of a lower order, which are not computed again.
        """
        varying = [one for one in columns if one is not None]
        width = len(varying) + 1
        # Column 0 is the constant 1, so sums of lower orders are part of those of the third.
        sums = np.empty((width, width, width))
        sums[0, 0, 0] = rows if counts is None else counts.sum()
        counted = varying if counts is None else [counts * one for one in varying]
        for one in range(1, width):
            _fill(sums, (0, 0, one), float(counted[one - 1].sum()))
        for one, two in combinations_with_replacement(range(1, width), 2):
            product = counted[one - 1] * varying[two - 1]
            _fill(sums, (0, one, two), float(product.sum()))
            for three in range(two, width):
                _fill(sums, (one, two, three), float(product @ varying[three - 1]))
        numbers = np.cumsum([one is not None for one in columns])
        place = np.where([one is None for one in columns], 0, numbers)
        third = sums[np.ix_(place, place, place)]
        return cls(float(sums[0, 0, 0]), sums[0, 0, place], sums[0][np.ix_(place, place)], third)

    def central(self, weights: Floats) -> tuple[float, float, float]:
        """Return mean, variance and third central moment of the combination Σ_k w_k x_k.

        >>> Moments.of([np.array([0.0, 1.0, 5.0]), None], 3).central(np.array([1.0, 3.0]))[0]
        5.0
        """
        average = float(weights @ self.first) / self.decisions
        square = float(weights @ self.second @ weights) / self.decisions
        spread = square - average**2
        # A difference of sums that rounding explains is none: all terms are equal.
        largest = float(np.abs(weights) @ np.abs(self.second) @ np.abs(weights)) / self.decisions
        if not spread > ROUNDING * largest:
            return average, 0.0 * spread, 0.0 * spread
        cube = np.einsum("ijk,i,j,k->", self.third, weights, weights, weights) / self.decisions
        return average, spread, float(cube) - 3 * average * square + 2 * average**3


def _fill(sums: Floats, place: tuple[int, int, int], value: float) -> None:
    """Set an element of a symmetric table, in all orders of its three numbers."""
    for one in permutations(place):
        sums[one] = value


class Units(NamedTuple):
    """What is independent: rows in blocks of time, or clusters. ``number [n]`` is that of each row.

    ``total`` is the number of units of the whole log. ``single`` says that each unit is one row.
    Without a number no sums over units are kept.
    """

    number: Integers | None = None
    total: int = 0
    clusters: bool = False
    single: bool = False

    @classmethod
    def of_rows(cls, rows: int) -> "Units":
        """Return units of single rows."""
        return cls(np.arange(rows), rows, single=True)


NO_UNITS = Units()
COLUMNS = 3
"""Columns of an estimate: u = y − c z, z and o, where c is a number near the value."""


class Side(Additive, frozen=True):
    """The ranges of the terms of an estimate, and which of its columns are not constant.

    ``reach`` is that of y / z, ``below`` that of z, ``offset`` that of o, and ``observed`` that of
    the terms of a mean.
    """

    shared = ("ratio",)

    ratio: bool
    reach: Range | None
    below: Range
    offset: Range | None
    observed: Range

    @classmethod
    def of(cls, terms: Terms) -> "Side":
        """Return the ranges over the rows of a batch."""
        y, z, o = terms.numerator, terms.denominator, terms.offset
        return cls(
            z is not None,
            None if terms.reach is None else Range(*terms.reach),
            Range(1.0, 1.0) if z is None else Range.of(z),
            None if o is None else Range.of(o),
            Range.of(y if o is None else y + o),
        )


class TermSums(Additive, frozen=True):
    """Sums over the columns of an estimate, and of the baseline from which it is subtracted.

    Terms are measured from the ``centre``, a number near the value, so sums lose no digits.
    ``apart`` is the range of observed differences from the baseline. ``table [units, 7]`` has the
    sums of all columns and the decisions of each unit: of clusters (``clusters``), or of blocks of
    rows. ``plain`` are the sums of the terms without their ``threshold``.
    """

    shared = ("centre", "clusters", "divisible", "threshold")

    moments: Moments
    centre: float
    mine: Side
    base: Side
    apart: Range
    table: Floats | None
    clusters: bool
    divisible: bool
    threshold: float | None
    plain: "TermSums | None"

    @classmethod
    def of(
        cls,
        terms: Terms,
        baseline: Terms | None = None,
        centre: float = 0.0,
        units: Units = NO_UNITS,
    ) -> "TermSums":
        """Return the sums of the terms of some rows."""
        rows, other = len(terms.numerator), baseline or terms
        paired = (None, None, None) if baseline is None else _columns(baseline, centre)
        columns = [*_columns(terms, centre), *paired]
        table, counts = None, terms.counts
        if units.number is not None:
            table = np.zeros((units.total, len(columns) + 1))
            for place, column in enumerate([*columns, None]):
                if place % COLUMNS == COLUMNS - 1 and column is None:
                    continue  # There is no offset.
                counted = counts if column is None else column
                if column is not None and counts is not None:
                    counted = counts * column
                table[:, place] = np.bincount(units.number, counted, minlength=units.total)
        plain = None
        if terms.without_threshold is not None or other.without_threshold is not None:
            without = None if baseline is None else baseline.without_threshold or baseline
            plain = cls.of(terms.without_threshold or terms, without, centre, units)
        return cls(
            Moments.of(columns, rows, counts),
            centre,
            Side.of(terms),
            Side.of(other),
            Range(0.0, 0.0) if baseline is None else Range.of(_plus(terms) - _plus(baseline)),
            table,
            units.clusters,
            units.single and counts is not None,
            terms.threshold,
            plain,
        )

    def estimate(self) -> Summed:
        """Return the estimate and what its intervals depend on."""
        value, _ = self._value(0)
        found = self._summed(value, self._influence(0), self._reach(0), self.mine.observed)
        blocks = found.blocks
        if blocks is not None and self.table is not None and not self.clusters:
            # A resample has its own ratio.
            u, z, o, decisions = self._occupied()[:, [0, 1, 2, 2 * COLUMNS]].T
            blocks = blocks._replace(numerator=u + self.centre * z, denominator=z, offset=o)
            found = found._replace(blocks=blocks._replace(decisions=decisions))
        # The terms without a threshold, if this estimate has one.
        plain = None if self.threshold is None or self.plain is None else self.plain.estimate()
        return found._replace(threshold=self.threshold, plain=plain)

    def difference(self) -> Summed:
        """Return the paired difference from the baseline and what its intervals depend on."""
        mine, base = self._reach(0), self._reach(COLUMNS)
        reach = None
        if mine is not None and base is not None:
            reach = Range(mine.low - base.high, mine.high - base.low)
        value = self._value(0)[0] - self._value(COLUMNS)[0]
        weights = self._influence(0) - self._influence(COLUMNS)
        plain = None if self.plain is None else self.plain.difference()
        return self._summed(value, weights, reach, self.apart)._replace(plain=plain)

    def _value(self, place: int) -> tuple[float, float]:
        """Return the estimate, and the mean of its denominator."""
        u, z, o = self.moments.first[place : place + COLUMNS]
        side = self.base if place else self.mine
        more = 0.0 if side.offset is None else float(o) / self.moments.decisions
        value = self.centre + float(u / z) + more if z > 0 else float("nan")
        return value, float(z) / self.moments.decisions

    def _influence(self, place: int) -> Floats:
        """Return the weights of the columns in (y − v z) / z̄ + o, v without the offset."""
        side, weights = self.base if place else self.mine, np.zeros(2 * COLUMNS)
        u, z, _ = self.moments.first[place : place + COLUMNS]
        if z > 0:
            below = float(z) / self.moments.decisions
            weights[place : place + 2] = 1 / below, -float(u / z) / below
        else:
            weights[place] = np.nan
        weights[place + 2] = 0.0 if side.offset is None else 1.0
        return weights

    def _reach(self, place: int) -> Range | None:
        """Return the smallest and the largest possible term."""
        side = self.base if place else self.mine
        if side.reach is None:
            return None
        more = side.offset or Range(0.0, 0.0)
        if not side.ratio:
            return Range(side.reach.low + more.low, side.reach.high + more.high)
        value, below = self._value(place)
        _, _, o = self.moments.first[place : place + COLUMNS]
        value -= 0.0 if side.offset is None else float(o) / self.moments.decisions
        products = np.outer([*side.below, 0.0], [end - value for end in side.reach])
        below = max(below, SMALLEST_MEAN)
        return Range(
            value + float(products.min()) / below + more.low,
            value + float(products.max()) / below + more.high,
        )

    def _occupied(self) -> Floats:
        table = self.table if self.table is not None else np.zeros((0, 2 * COLUMNS + 1))
        return table[table[:, -1] > 0]

    def _summed(
        self, value: float, weights: Floats, reach: Range | None, observed: Range
    ) -> Summed:
        count = self.moments.decisions
        if np.isnan(weights).any():
            spread = third = average = float("nan")
        else:
            average, spread, third = self.moments.central(weights)
        found = Summed(
            value,
            count,
            float(np.sqrt(spread / (count - 1))) if count > 1 else float("inf"),
            third / count**2,
            reach,
            observed,
        )
        if self.table is None:
            return found
        table = self._occupied()
        decisions = table[:, -1]
        deviation = table[:, :-1] @ np.nan_to_num(weights) - average * decisions
        if self.clusters:
            return _clustered(found, spread, decisions, deviation)
        zero = np.zeros(len(decisions))
        sums = deviation + value * decisions
        return found._replace(
            blocks=Blocks(sums, decisions, zero, decisions, deviation, self.divisible)
        )


SMALLEST_MEAN = 1e-300
"""Lower bound of the mean weight, so that a division by 0 does not occur if all weights are 0."""


def _columns(terms: Terms, centre: float) -> tuple[Floats, Floats | None, Floats | None]:
    """Return the columns u, z and o; None is a constant."""
    z = terms.denominator
    return terms.numerator - (centre if z is None else centre * z), z, terms.offset


def _plus(terms: Terms) -> Floats:
    return terms.numerator if terms.offset is None else terms.numerator + terms.offset


def _clustered(rows: Summed, spread: float, sizes: Floats, deviation: Floats) -> Summed:
    """Return an estimate whose clusters are independent, and not its rows.

    With G clusters of n rows the term of a cluster is V + (G / n) Σ_i (t_i − V) over its rows. The
    variance of V is Σ_g D_g² / (1 − n_g / n) / n², D_g the sum over the n_g rows of a cluster: CR2,
    unbiased if rows are independent. The largest possible term is that of the largest cluster.

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
    scale = clusters / count
    share = sizes / count
    free = np.where(share < 1, 1 / np.maximum(1 - share, SMALLEST_MEAN), 1.0)
    variance = float(free @ deviation**2) / count**2
    independent, most = count * spread, float(sizes.max())
    effect = float(deviation @ deviation) / independent if independent > 0 else np.inf
    reach = unseen = None
    if rows.reach is not None:
        reach, unseen = (
            (value + times * (rows.reach[0] - value), value + times * (rows.reach[1] - value))
            for times in (scale * most, scale * min(max(effect, 1.0), most))
        )
    terms = value + scale * deviation
    ones = np.ones(clusters)
    return rows._replace(
        decisions=float(clusters),
        error=float(np.sqrt(variance)) if clusters > 1 else float("inf"),
        third=float(np.sum(deviation**3)) / count**3,
        reach=reach,
        observed=Range.of(terms),
        unseen=unseen,
        freedom=_freedom(sizes, free, effect),
        blocks=Blocks(terms, ones, np.zeros(clusters), ones, scale * deviation),
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
