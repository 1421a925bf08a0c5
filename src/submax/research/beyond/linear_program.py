"""The linear program over all reward levels."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy

from submax.core.arrays import Booleans, Floats
from submax.core.conditioning import StrategyRequirements, Table, WeightedStrategy
from submax.core.errors import FallbackWarning, fall_back
from submax.strategies.weighted import Optimized, bounds, check_values

TOLERANCE = 1e-10
"""How far a solution may exceed a limit, and a gain that counts as none."""
SOLVER = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}


def best_point(gains: Floats, second: Floats, matrix: Floats, limits: Floats) -> Floats | None:
    """Return the free x with the highest gains·x such that ``matrix`` x ≤ ``limits``.

    Among the best points it is the one with the highest second·x, if that is bounded. None if there
    is no best point. ``gains`` and ``second`` are ``[K]``, ``matrix [M, K]``, ``limits [M]``.

    >>> square = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    >>> best_point(np.array([2.0, 0.0]), np.array([0.0, 1.0]), square, np.ones(3)).tolist()
    [1.0, 1.0]
    """
    program: dict[str, Any] = {
        "A_ub": matrix,
        "b_ub": limits,
        "bounds": (None, None),
        "options": SOLVER,
    }
    found = scipy.optimize.linprog(-gains, **program)
    if found.status != 0:
        return None
    # As many rows with a price as variables determine the point alone.
    if np.count_nonzero(np.abs(found.ineqlin.marginals) > TOLERANCE) < len(gains):
        best: dict[str, Any] = {"A_eq": gains[None], "b_eq": [gains @ found.x]}
        highest = scipy.optimize.linprog(-second, **program, **best)
        found = highest if highest.status == 0 else found
    point: Floats = found.x
    return point


class UnsolvedWarning(FallbackWarning):
    """Some linear programs had no solution, and the optimistic policy decided instead."""


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

    Reference: Xu et al. (2024), equation gm-inference. *Departs from the paper:* it optimizes λ for
    two levels only, equations objective-is and bounds.
    """

    traits: ClassVar[StrategyRequirements] = StrategyRequirements(
        needs_listing=True, needs_values=True
    )

    def weights(self, table: Table) -> Floats:
        """Solve the programs; without a solution the weight 1 is on the highest level observed."""
        check_values("linear program", table)
        levels, actions = table.probabilities.shape[-2:]
        observed = table.prior > 0
        few = observed.sum(axis=-1) < 2
        if levels == 2 or few.all():
            return Optimized().weights(table)
        weights = Optimized().weights(table) if few.any() else np.empty(table.prior.shape)
        unsolved = 0
        for place in np.ndindex(few.shape):
            if few[place]:
                continue
            parts = (table.probabilities[place], table.values[place])
            found = _weights(*parts, observed[place])
            if found is None and levels > actions:
                found = _weights(*parts, _spread(observed[place], actions))
            if found is None:
                unsolved += 1
                found = np.eye(levels)[np.flatnonzero(observed[place])[-1]]
            weights[place] = found
        if unsolved:
            message = (
                f"{unsolved} of {few.size} linear programs had no reliable solution, because "
                "conditioned policies are linearly dependent; those decisions were optimistic"
            )
            fall_back(UnsolvedWarning, message, unsolved)
        return weights


def _spread(observed: Booleans, actions: int) -> Booleans:
    """Select at most as many levels as actions, from the lowest to the highest: ``[L]``."""
    found = np.flatnonzero(observed)
    kept = np.zeros_like(observed)
    steps = np.linspace(0, len(found) - 1, max(2, min(actions, len(found))))
    kept[found[np.rint(steps).astype(np.int64)]] = True
    return kept


def _weights(rows: Floats, values: Floats, observed: Booleans) -> Floats | None:
    """Return the weights ``[L]`` of the observed levels of ``rows [L, M]``; None if unsolved."""
    base = np.flatnonzero(observed)[-1]
    limits = rows[base]
    # Values are divided by a power of two, which has no rounding error, so all are below one.
    values = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    used = np.flatnonzero(observed & (bounds(rows, limits).lowest <= 0))
    # Rows of the program are scaled so that rare actions count as much as frequent ones.
    size = rows[observed].max(axis=0)
    size[size == 0] = 1.0
    weights = np.eye(len(rows))[base]
    if len(used):
        matrix = (limits - rows[used]).T / size[:, None]
        point = best_point(values[used] - values[base], 1.0 * (used - base), matrix, limits / size)
        if point is None:
            return None
        weights[used] = point
        weights[base] = 1 - point.sum()
    return weights
