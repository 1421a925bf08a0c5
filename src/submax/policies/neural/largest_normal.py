"""The probability that each of many independent normal variables is the largest, by quadrature.

P(k) = ∫ f_k(t) Π_{j≠k} F_j(t) dt, with f the density and F the distribution function of N(μ, σ²).
All variables of a row share the nodes, so that the cost is linear in their number. The lower limit
of the integral is a point below which the largest variable lies with a probability Π_j F_j under
1e-13, and at least the highest of all μ_j − 7.5 σ_j. A variable that matters and lies at some
distance from the lower limit must reach down to it, so that its σ is at least this distance / 7.5.
Hence nodes whose gaps grow with the distance resolve every variable, however much the standard
deviations differ.

Equal variables form a group, whose members share one integral.

A variable with standard deviation 0 is a constant. The highest constant is the largest variable
with probability Π_j F_j at its value; equal constants share this probability.
"""

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy
from numpy.polynomial import legendre

from submax.core.arrays import Booleans, Floats, Integers

REACH = 7.5
"""Number of standard deviations beyond which a normal variable is neglected: Φ(−7.5) ≈ 3e-14."""
NEGLIGIBLE = 1e-13
"""Probabilities below this are neglected."""
BISECTIONS = 10
"""Bisection steps for the lower limit; it need not be exact, only low enough."""
NODES_PER_PANEL = 16
FEWEST_PANELS = 4
PANEL_WIDTH = 0.6
"""The largest logarithmic width of a panel that keeps the error below 1e-9; the tests check it."""
NUMBERS_PER_CHUNK = 2**20
"""About how many numbers an intermediate array holds, 8 MB, whatever the size of the problem."""


class Rivals(NamedTuple):
    """Groups of equal variables in N rows: ``[N, K]``; means are relative to a number of the row.

    ``members`` is the number of variables in a group. Of the groups that can be the largest,
    ``random`` ones have a density, and ``constant`` ones have standard deviation 0.
    """

    mean: Floats
    deviation: Floats
    members: Integers
    random: Booleans
    constant: Booleans

    def below(self, point: Floats) -> Floats:
        """F of every variable at ``point [N, m]``, 1 for those without a density: ``[N, m, K]``."""
        below: Floats = scipy.special.ndtr(self._standardized(point))
        if not self.random.all():
            below[~np.broadcast_to(self.random[:, None, :], below.shape)] = 1.0
        return below

    def all_below(self, below: Floats) -> Floats:
        """The product of F over all members of all groups: ``[N, m, K] -> [N, m]``."""
        if self.members.max(initial=0) <= 1:
            product: Floats = below.prod(axis=-1)
            return product
        # Above the lower limit every F is at least Φ(−7.5), so that its logarithm is finite.
        logarithm: Floats = np.einsum("nmk,nk->nm", np.log(below), self.members)
        return np.exp(logarithm)

    def density(self, point: Floats) -> Floats:
        """The density f of every variable at ``point [N, m]``, 0 for constants: ``[N, m, K]``."""
        standardized = self._standardized(point)
        standardized *= standardized
        standardized *= -0.5
        np.exp(standardized, out=standardized)
        height = np.where(self.random, 1 / (math.sqrt(2 * math.pi) * self.deviation), 0.0)
        standardized *= height[:, None, :]
        return standardized

    def of(self, rows: Integers) -> "Rivals":
        """The rivals of some rows."""
        return Rivals(
            self.mean[rows],
            self.deviation[rows],
            self.members[rows],
            self.random[rows],
            self.constant[rows],
        )

    def keep(self, column: Integers) -> "Rivals":
        """The rivals in some columns of each row, ``[N, k]``."""
        return Rivals(
            np.take_along_axis(self.mean, column, axis=-1),
            np.take_along_axis(self.deviation, column, axis=-1),
            np.take_along_axis(self.members, column, axis=-1),
            np.take_along_axis(self.random, column, axis=-1),
            np.take_along_axis(self.constant, column, axis=-1),
        )

    def _standardized(self, point: Floats) -> Floats:
        standardized = point[:, :, None] - self.mean[:, None, :]
        standardized /= self.deviation[:, None, :]
        return standardized


class Grid(NamedTuple):
    """The axis of each row: its lower limit, smallest deviation and logarithmic length, ``[N]``."""

    start: Floats
    unit: Floats
    stretch: Floats


def largest_normal(mean: Floats, deviation: Floats) -> Floats:
    """Probability that each of the N(mean, deviation²) is the largest: ``[..., K] -> [..., K]``.

    The error is below 1e-9.

    >>> largest_normal(np.array([0.0, 0.0, -50.0]), np.array([1.0, 3.0, 1.0])).round(8).tolist()
    [0.5, 0.5, 0.0]
    """
    size = mean.shape[-1]
    means, deviations = mean.reshape(-1, size), deviation.reshape(-1, size)
    result = np.empty(means.shape)
    rows = max(1, NUMBERS_PER_CHUNK // (size * NODES_PER_PANEL * FEWEST_PANELS))
    for first in range(0, len(means), rows):
        block = slice(first, first + rows)
        result[block] = _chunk(means[block], deviations[block])
    return result.reshape(mean.shape)


def _chunk(mean: Floats, deviation: Floats) -> Floats:
    groups, group = _grouped(mean, deviation)
    rivals, grid, column = _rivals(*groups)
    needed = np.maximum(np.ceil(grid.stretch / PANEL_WIDTH), FEWEST_PANELS)
    panels = np.exp2(np.ceil(np.log2(needed))).astype(np.int64)
    probability = np.empty(rivals.mean.shape)
    for count in np.unique(panels):
        rows = np.flatnonzero(panels == count)
        part = Grid(*(values[rows] for values in grid))
        probability[rows] = _integrals(rivals.of(rows), part, int(count))
    of_group = np.zeros(groups[0].shape)
    np.put_along_axis(of_group, column, probability, axis=-1)
    result = np.take_along_axis(of_group, group, axis=-1)
    normalized: Floats = result / result.sum(axis=-1, keepdims=True)
    return normalized


def _grouped(mean: Floats, deviation: Floats) -> tuple[tuple[Floats, Floats, Integers], Integers]:
    """Mean, deviation and number of members of each group, and the group of each variable.

    Rows with fewer groups than others are filled up with groups of no members and the constant −∞.
    """
    rows = np.arange(len(mean))[:, None]
    order = np.lexsort((deviation, mean), axis=-1)
    sorted_mean, sorted_deviation = mean[rows, order], deviation[rows, order]
    new = (np.diff(sorted_mean, axis=-1) != 0) | (np.diff(sorted_deviation, axis=-1) != 0)
    number = np.zeros(mean.shape, dtype=np.int64)
    np.cumsum(new, axis=-1, out=number[:, 1:])
    most = int(number[:, -1].max()) + 1
    group_mean = np.full((len(mean), most), -np.inf)
    group_deviation = np.zeros(group_mean.shape)
    group_mean[rows, number], group_deviation[rows, number] = sorted_mean, sorted_deviation
    members = np.bincount((rows * most + number).ravel(), minlength=group_mean.size)
    group = np.empty(mean.shape, dtype=np.int64)
    group[rows, order] = number
    return (group_mean, group_deviation, members.reshape(group_mean.shape)), group


def _rivals(mean: Floats, deviation: Floats, members: Integers) -> tuple[Rivals, Grid, Integers]:
    """The groups that can be the largest, the axis to integrate over, and the groups' columns."""
    # Relative to the variable that sets the start, differences far below the means stay exact.
    leader = np.argmax(mean - REACH * deviation, axis=-1)
    mean = mean - np.take_along_axis(mean, leader[:, None], axis=-1)
    start = (mean - REACH * deviation).max(axis=-1)
    start = _raised(*_reaching(mean, deviation, members, start))
    rivals, grid = _reaching(mean, deviation, members, start)
    possible = rivals.random | rivals.constant
    most = int(possible.sum(axis=-1).max())
    column = np.argsort(~possible, axis=-1, kind="stable")[:, :most]
    return rivals.keep(column), grid, column


def _reaching(
    mean: Floats, deviation: Floats, members: Integers, start: Floats
) -> tuple[Rivals, Grid]:
    """The variables that can lie above the start, and the axis up to their upper end."""
    upper = mean + REACH * deviation
    possible = upper >= start[:, None]
    random = possible & (deviation > 0)
    narrowest = np.where(random, deviation, np.inf).min(axis=-1)
    unit = np.where(np.isfinite(narrowest), narrowest, 1.0)
    stretch = np.log1p((upper.max(axis=-1) - start) / unit)
    deviation = np.where(random, deviation, 1.0)
    rivals = Rivals(mean, deviation, members, random, possible & ~random)
    return rivals, Grid(start, unit, stretch)


def _raised(rivals: Rivals, grid: Grid) -> Floats:
    """The start, raised by bisection while the largest variable almost certainly lies above it."""
    low, high = np.zeros(len(grid.start)), np.ones(len(grid.start))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        point = grid.start + grid.unit * np.expm1(grid.stretch * middle)
        negligible = rivals.all_below(rivals.below(point[:, None]))[:, 0] < NEGLIGIBLE
        low, high = np.where(negligible, middle, low), np.where(negligible, high, middle)
    raised: Floats = grid.start + grid.unit * np.expm1(grid.stretch * low)
    return raised


def _integrals(rivals: Rivals, grid: Grid, panels: int) -> Floats:
    """∫ f_k Π_{j≠k} F_j for variables with a density, Π_j F_j at the start for constants."""
    at_start = rivals.all_below(rivals.below(grid.start[:, None]))
    constants = np.where(rivals.constant, rivals.members, 0)
    shares = np.maximum(constants.sum(axis=-1, keepdims=True), 1)
    probability: Floats = rivals.constant * at_start / shares
    stretch, unit = grid.stretch[:, None], grid.unit[:, None]
    for node, weight in _blocks(panels, max(1, NUMBERS_PER_CHUNK // rivals.mean.size)):
        point = grid.start[:, None] + unit * np.expm1(stretch * node)
        step = weight * stretch * unit * np.exp(stretch * node)
        # Above the start every F is at least Φ(−7.5), so that F_k can be divided out again.
        below = rivals.below(point)
        step *= rivals.all_below(below)
        density = rivals.density(point)
        density /= below
        probability += np.einsum("nmk,nm->nk", density, step)
    return probability


def _blocks(panels: int, most: int) -> Iterator[tuple[Floats, Floats]]:
    """Nodes and weights of Gauss-Legendre panels on [0, 1], in blocks of at most ``most``."""
    node, weight = _rule(panels)
    for first in range(0, len(node), most):
        yield node[first : first + most], weight[first : first + most]


@cache
def _rule(panels: int) -> tuple[Floats, Floats]:
    node, weight = legendre.leggauss(NODES_PER_PANEL)
    starts = np.arange(panels)[:, None]
    return ((starts + (node + 1) / 2) / panels).ravel(), np.tile(weight, panels) / (2 * panels)
