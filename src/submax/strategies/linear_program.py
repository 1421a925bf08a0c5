"""The linear program over all reward levels."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.conditioning.strategy_facts import StrategyFacts
from submax.core.conditioning.table import Table
from submax.core.conditioning.weighted_strategy import WeightedStrategy
from submax.core.running.fallback import FallbackWarning, fall_back
from submax.strategies.batched_simplex import maximize
from submax.strategies.optimized import Optimized, bounds, check_values


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

    facts: ClassVar[StrategyFacts] = StrategyFacts(needs_listing=True, needs_values=True)

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
    place = np.cumsum(observed, axis=-1) - 1
    steps = max(1, min(actions, observed.shape[-1]) - 1)
    kept = np.zeros_like(observed)
    for step in range(steps + 1):
        kept |= place == np.rint(step * (count - 1) / steps)
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
    """Divide by a power of two, which has no rounding error, so that all are below one."""
    exponent = np.frexp(np.abs(values).max(axis=-1, keepdims=True))[1]
    scaled: Floats = np.ldexp(values, -exponent)
    return scaled
