"""The linear program over all reward levels."""

from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.conditioning import SUM_TOLERANCE, StrategyRequirements, Table, WeightedStrategy
from submax.core.errors import FallbackWarning, fall_back
from submax.strategies.weighted import Optimized, bounds, check_values

SMALLEST_PIVOT = 1e-9
"""Entries smaller than this are treated as zeros with a rounding error."""
SMALLEST_INPUT = SUM_TOLERANCE / 2
"""The same bound for programs of one variable, whose only pivot is an input, free of error."""
SMALLEST_COST = 1e-14
"""A cost counts as zero if it is below this share of the numbers that it was computed from."""
CONSISTENT = 1e-9
"""If no row bounds a direction and its cost is above this, the program is unbounded."""
VIOLATION = 1e-12
"""How far a limit may be exceeded in exchange for a larger pivot."""
FEASIBLE = 1e-10
"""A point that exceeds a limit by more than this is not a solution."""
OPTIMAL = 1e-7
"""The relative error that the optimality conditions may have at a solution."""
REFINEMENTS = 2
"""Steps of iterative refinement of a solution."""
FINISHED_SHARE = 1 / 8
"""Solved programs are removed from the arrays when this share of the programs is solved."""


class SimplexSolution(NamedTuple):
    """The best ``point [B, K]``, and whether it was found; the point is 0 if it was not."""

    point: Floats
    solved: Booleans


@dataclass
class _Dictionaries:
    """Programs that are not solved yet; variables 0 … K − 1 are free, K + i is the slack of row i.

    ``entries [B, K + 1, M + 2]`` holds N, with p after its columns and both costs after its rows.
    ``outside [B, K]`` are the variables that are zero, ``basic [B, M]`` those of the rows.
    """

    number: Integers
    entries: Floats
    sizes: Floats
    """The size of the largest term in the sum that gave each cost, ``[B, K, 2]``; 0 for inputs."""
    outside: Integers
    basic: Integers
    closed: Booleans
    """Columns that no row bounds, ``[B, K]``."""
    smallest: Floats
    """The smallest entry that may be a pivot, ``[B, 1]``."""
    unbounded: Booleans

    def take(self, chosen: Booleans) -> Self:
        """Return some of the programs."""
        return type(self)(*(getattr(self, field.name)[chosen] for field in fields(self)))


class _Move(NamedTuple):
    """The column that enters and its direction, 0 if the program is finished; ``[B]``."""

    column: Integers
    direction: Floats

    def take(self, chosen: Booleans) -> "_Move":
        return _Move(self.column[chosen], self.direction[chosen])


def maximize(costs: Floats, matrix: Floats, limits: Floats) -> SimplexSolution:
    """Solve B programs of K variables and M rows.

    ``costs [B, K, 2]`` is g and h, ``matrix [B, K, M]`` is N transposed, ``limits [B, M]`` is p.
    Rows and costs should be of the order of 1, because the thresholds below which a number counts
    as zero are absolute. A program is not solved if it is unbounded, or if rounding errors leave no
    point that passes the checks.

    >>> cost, rows = np.array([[[2.0, 0.0], [1.0, 0.0]]]), np.array([[[1.0, 0, -1], [0, 1.0, -1]]])
    >>> maximize(cost, rows, np.ones((1, 3)))
    SimplexSolution(point=array([[1., 1.]]), solved=array([ True]))
    """
    count, width, rows = matrix.shape
    result = SimplexSolution(np.zeros((count, width)), np.zeros(count, dtype=bool))
    working = _start(costs, matrix, limits)
    patience = 10 + 4 * width
    for step in range(patience + 10 * (width + rows)):
        by_number = step >= patience
        move = _entering(working, by_number)
        finished = move.direction == 0
        if np.count_nonzero(finished) >= FINISHED_SHARE * len(finished):
            _finish(result, working.take(finished), costs, matrix, limits)
            working, move = working.take(~finished), move.take(~finished)
        if not len(working.number):
            break
        row, bounded = _leaving(working, move, by_number)
        _close(working, move, bounded)
        _pivot(working, move.column, row, bounded & (move.direction != 0))
    return result


def _start(costs: Floats, matrix: Floats, limits: Floats) -> _Dictionaries:
    count, width, rows = matrix.shape
    entries = np.zeros((count, width + 1, rows + 2))
    entries[:, :width, :rows] = matrix
    entries[:, width, :rows] = limits
    entries[:, :width, rows:] = costs
    variables = matrix.any(axis=-1).sum(axis=-1, keepdims=True)
    return _Dictionaries(
        number=np.arange(count),
        entries=entries,
        sizes=np.zeros(costs.shape),
        outside=np.tile(np.arange(width), (count, 1)),
        basic=np.tile(np.arange(width, width + rows), (count, 1)),
        closed=np.zeros((count, width), dtype=bool),
        smallest=np.where(variables > 1, SMALLEST_PIVOT, SMALLEST_INPUT),
        unbounded=np.zeros(count, dtype=bool),
    )


def _entering(working: _Dictionaries, by_number: bool) -> _Move:
    """Choose the column that enters: free variables, then those that raise g, then h alone."""
    width = working.outside.shape[1]
    costs = working.entries[:, :width, -2:]
    costs = np.where(np.abs(costs) > SMALLEST_COST * working.sizes, costs, 0.0)
    first = costs[..., 0] != 0
    cost = np.where(first, costs[..., 0], costs[..., 1])
    free = working.outside < width
    allowed = ((cost > 0) | (free & (cost < 0))) & ~working.closed
    allowed &= ~working.unbounded[:, None]
    if by_number:
        column = np.where(allowed, working.outside, np.iinfo(np.int64).max).argmin(axis=1)
    else:
        rank = np.where(allowed, 1 + first + 2 * free, 0)
        best = rank == rank.max(axis=1, keepdims=True)
        column = np.where(best, np.abs(cost), -1.0).argmax(axis=1)
    at = np.arange(len(column)), column
    return _Move(column, np.where(allowed[at], np.sign(cost[at]), 0.0))


def _leaving(working: _Dictionaries, move: _Move, by_number: bool) -> tuple[Integers, Booleans]:
    """Return the row whose limit is met first, and whether there is one; ``[B]`` each.

    Among rows that are met together, up to rounding errors, take the one with the largest pivot.
    """
    width = working.outside.shape[1]
    slope = working.entries[np.arange(len(move.column)), move.column, :-2]
    slope = slope * move.direction[:, None]
    blocks = (slope > working.smallest) & (working.basic >= width)
    divisor = np.where(blocks, slope, 1.0)
    left = np.maximum(working.entries[:, -1, :-2], 0.0)
    relaxed = np.where(blocks, (left + VIOLATION) / divisor, np.inf).min(axis=1, keepdims=True)
    tied = blocks & (left <= relaxed * divisor)
    if by_number:
        row = np.where(tied, working.basic, np.iinfo(np.int64).max).argmin(axis=1)
    else:
        row = np.where(tied, slope, 0.0).argmax(axis=1)
    return row, blocks.any(axis=1)


def _close(working: _Dictionaries, move: _Move, bounded: Booleans) -> None:
    """Close columns that no row bounds; programs that would gain by them are unbounded."""
    at = np.flatnonzero(~bounded & (move.direction != 0))
    column = move.column[at]
    working.closed[at, column] = True
    gain = np.abs(working.entries[at, column, -2])
    working.unbounded[at] |= gain > CONSISTENT * (1 + working.sizes[at, column, 0])


def _pivot(working: _Dictionaries, column: Integers, row: Integers, moving: Booleans) -> None:
    """Exchange the variable of ``column`` with that of ``row``, in the programs that move."""
    at = np.flatnonzero(moving)
    column, row = column[at], row[at]
    entries, width = working.entries, working.outside.shape[1]
    pivot = entries[at, column, row]
    # Programs that do not move are multiplied by zeros, which is cheaper than indexing.
    lead, across = np.zeros(entries.shape[:2]), np.zeros((len(entries), entries.shape[2]))
    lead[at] = entries[at, :, row] / pivot[:, None]
    lead[at, column] = 1 / pivot
    across[at] = entries[at, column]
    _grow(working.sizes, at, column, lead[at, :width], across[at, -2:])
    entries[at, column] = 0.0
    entries -= lead[:, :, None] * across[:, None, :]
    entries[at, :, row] = lead[at]
    entered = working.outside[at, column]
    working.outside[at, column] = working.basic[at, row]
    working.basic[at, row] = entered


def _grow(sizes: Floats, at: Integers, column: Integers, lead: Floats, cost: Floats) -> None:
    """Update the largest term of every cost; that of ``column`` is only divided."""
    before = sizes[at, column]
    terms = np.maximum(before, np.abs(cost))[:, None, :] * np.abs(lead)[..., None]
    after = np.maximum(sizes[at], terms)
    entering = np.arange(len(at)), column
    after[entering] = before * np.abs(lead[entering])[:, None]
    sizes[at] = after


def _finish(
    found: SimplexSolution, done: _Dictionaries, costs: Floats, matrix: Floats, limits: Floats
) -> None:
    """Read the points from the dictionaries, refine them with the inputs, and check them."""
    costs, matrix, limits = (part[done.number] for part in (costs, matrix, limits))
    width = matrix.shape[1]
    program, row = np.nonzero(done.basic < width)
    variable = done.basic[program, row]
    point = np.zeros(done.outside.shape)
    point[program, variable] = done.entries[program, -1, row]
    tight = np.maximum(done.outside - width, 0)
    for _ in range(REFINEMENTS):
        left = limits - np.einsum("bkm,bk->bm", matrix, point)
        rest = np.where(done.outside >= width, np.take_along_axis(left, tight, axis=1), 0.0)
        change = np.einsum("bk,bkm->bm", rest, done.entries[:, :-1, :-2])
        point[program, variable] += change[program, row]
    left = limits - np.einsum("bkm,bk->bm", matrix, point)
    allowed = FEASIBLE + SUM_TOLERANCE * np.abs(point).sum(axis=1)
    solved = ~done.unbounded & (left.min(axis=1) >= -allowed) & _optimal(done, costs, matrix)
    found.point[done.number] = np.where(solved[:, None], point, 0.0)
    found.solved[done.number] = solved


def _optimal(done: _Dictionaries, costs: Floats, matrix: Floats) -> Booleans:
    """Return whether multipliers u ≥ 0 of the tight rows give g = Nᵀ u, from the inputs."""
    width = matrix.shape[1]
    slack = done.outside >= width
    multiplier = np.where(slack, -done.entries[:, :width, -2], 0.0)
    tight = np.take_along_axis(matrix, np.maximum(done.outside - width, 0)[:, None], axis=2)
    terms = tight * multiplier[:, None]
    size = 1 + np.abs(terms).sum(axis=2)
    exact = np.abs(costs[..., 0] - terms.sum(axis=2)) <= OPTIMAL * size
    return exact.all(axis=1) & (multiplier >= -OPTIMAL).all(axis=1)


class UnsolvedWarning(FallbackWarning):
    """Some linear programs had no solution, and the optimistic policy decided instead."""


class _Programs(NamedTuple):
    """B programs over the weights of all levels but ``base``, whose weight is the rest to 1."""

    base: Integers
    costs: Floats
    matrix: Floats
    limits: Floats


@dataclass(frozen=True)
class LinearProgram(WeightedStrategy):
    """The weights that earn most among those that give a policy without clipping.

    maximize Σ_l w_l V_l subject to Σ_l w_l π(a | l) ≥ 0 for every action a and Σ_l w_l = 1, with V
    the importance-sampled rewards in ``table.values``: one program for each row of the table. With
    two levels it is ``Optimized``. Among the weights that earn most, those with the highest mean
    level Σ_l l w_l are taken.

    Levels that were never observed have weight 0; if fewer than two were observed, the weights are
    those of ``Optimized``. With b the highest level observed
    and w_b = 1 − Σ_{l≠b} w_l, the program is to maximize Σ_l w_l (V_l − V_b) subject to
    Σ_l w_l (π(a | b) − π(a | l)) ≤ π(a | b); w = 0 is the optimistic policy. A level whose
    conditioned policy equals that of b, up to rounding errors, has weight 0.

    If there are more levels than actions, the conditioned policies are linearly dependent. If the
    program then has no solution, only as many levels as actions are used, spread from the lowest to
    the highest.

    If conditioned policies are linearly dependent and their values are not dependent in the same
    way, the weights are unbounded. This can happen because values are averages over all contexts,
    while policies are those of one context. The policy is then optimistic, and the fallback is
    counted in a warning, ``UnsolvedWarning``.

    >>> table = Table(
    ...     probabilities=np.array([[0.4, 0.4, 0.2], [0.1, 0.4, 0.5], [0.2, 0.2, 0.6]]),
    ...     levels=np.array([0.0, 0.5, 1.0]),
    ...     prior=np.array([0.5, 0.3, 0.2]),
    ...     values=np.array([0.1, 0.3, 0.2]),
    ... )
    >>> LinearProgram().probabilities(table).round(3).tolist()
    [0.0, 1.0, 0.0]

    Reference: Xu et al. (2024), equation gm-inference; Dantzig (1963).

    *Departs from the paper:* it optimizes λ for two levels only, equations objective-is and bounds.
    """

    traits: ClassVar[StrategyRequirements] = StrategyRequirements(
        needs_listing=True, needs_values=True
    )

    def weights(self, table: Table) -> Floats:
        """Solve the programs; without a solution the weight 1 is on the highest level observed."""
        check_values("linear program", table)
        observed = table.prior > 0
        few = observed.sum(axis=-1) < 2
        weights = Optimized().weights(table) if few.any() else np.empty(table.prior.shape)
        if few.all():
            return weights
        weights[~few], solved = _solved(table, observed, ~few)
        left = np.array(~few)
        left[left] = ~solved
        if left.any() and observed.shape[-1] > table.probabilities.shape[-1]:
            fewer = _spread(observed, table.probabilities.shape[-1])
            weights[left], solved = _solved(table, fewer, left)
        unsolved = int(np.count_nonzero(~solved))
        if unsolved:
            message = (
                f"{unsolved} of {few.size} linear programs had no reliable solution, because "
                "conditioned policies are linearly dependent; those decisions were optimistic"
            )
            fall_back(UnsolvedWarning, message, unsolved)
        return weights


def _spread(observed: Booleans, actions: int) -> Booleans:
    """Select at most as many levels as actions, from the lowest to the highest: ``[..., L]``."""
    count = observed.sum(axis=-1, keepdims=True)
    index = np.cumsum(observed, axis=-1) - 1
    steps = max(1, min(actions, observed.shape[-1]) - 1)
    kept = np.zeros_like(observed)
    for step in range(steps + 1):
        kept |= index == np.rint(step * (count - 1) / steps)
    return np.where(count > actions, observed & kept, observed)


def _solved(table: Table, observed: Booleans, where: Booleans) -> tuple[Floats, Booleans]:
    """Return the weights ``[B, L]`` of the B selected tables, and whether they were found."""
    programs = _programs(table.probabilities[where], table.values[where], observed[where])
    weights, solved = maximize(programs.costs, programs.matrix, programs.limits)
    rest = 1 - weights.sum(axis=-1)
    weights[np.arange(len(weights)), programs.base] = rest
    return weights, solved


def _programs(rows: Floats, values: Floats, observed: Booleans) -> _Programs:
    """``[B, L, M]``, ``[B, L]`` and ``[B, L]`` give the programs of the levels observed."""
    levels = observed.shape[1]
    base = levels - 1 - observed[:, ::-1].argmax(axis=1)
    at = np.arange(len(base)), base
    limits = rows[at]
    distinct = observed & (bounds(rows, limits[:, None]).lowest <= 0)
    values = _scaled(values)
    costs = np.stack([values - values[at][:, None], np.arange(levels) - base[:, None]], axis=-1)
    costs = np.where(distinct[..., None], costs, 0.0)
    matrix = np.where(distinct[..., None], limits[:, None] - rows, 0.0)
    # Rows are scaled so that rare actions count as much as frequent ones.
    size = np.where(observed[..., None], rows, 0.0).max(axis=1)
    size[size == 0] = 1.0
    return _Programs(base, costs, matrix / size[:, None], limits / size)


def _scaled(values: Floats) -> Floats:
    """Divide by a power of two, which has no rounding error, so all are below one."""
    exponent = np.frexp(np.abs(values).max(axis=-1, keepdims=True))[1]
    return np.ldexp(values, -exponent)
