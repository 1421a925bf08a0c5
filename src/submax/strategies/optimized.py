"""The optimized policy."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.marginalization import SUM_TOLERANCE, ends
from submax.core.conditioning.strategy_facts import StrategyFacts
from submax.core.conditioning.table import Table
from submax.core.conditioning.weighted_strategy import WeightedStrategy
from submax.core.errors import InputError


class Bounds(NamedTuple):
    """The range of λ that leaves every probability non-negative."""

    lowest: Floats
    highest: Floats


@dataclass(frozen=True)
class Optimized(WeightedStrategy):
    """The λ that earns most among those that give a policy without clipping.

    R(λ) = λ (V₁ − V₀) + constant is linear, with V the importance-sampled rewards in
    ``table.values``, so the best λ is a bound: the highest if V₁ ≥ V₀, else the lowest. The policy
    is (1 − λ) p₀ + λ p₁.

    Reference: Xu et al. (2024), equations objective-is and bounds.

    *Departs from the paper:* the labels of its two sets of bounds are swapped; see ``bounds``.
    """

    facts: ClassVar[StrategyFacts] = StrategyFacts(needs_listing=True, needs_values=True)

    def weights(self, table: Table) -> Floats:
        check_values("optimized", table)
        low, high = table.probabilities[..., 0, :], table.probabilities[..., -1, :]
        lowest, highest = bounds(low, high)
        chosen = np.where(table.values[..., -1] >= table.values[..., 0], highest, lowest)
        return ends(table, 1.0 - chosen, chosen)


def check_values(name: str, table: Table) -> None:
    """Raise an InputError if the table lacks the values that the strategy ``name`` needs."""
    if not np.all(np.isfinite(table.values)):
        raise InputError(
            f"the {name} strategy needs the logged probability of every rewarded decision, and "
            "some feedback has none: log propensities, or take another strategy, such as submax"
        )


def bounds(low: Floats, high: Floats) -> Bounds:
    """The λ with (1 − λ) p₀ + λ p₁ ≥ 0 for every action; ``[..., M]`` twice ``-> [...]`` twice.

    An action with p₁ > p₀ gives the lower bound −p₀ / (p₁ − p₀), one with p₁ < p₀ the upper bound
    p₀ / (p₀ − p₁); the tightest come from the largest and the smallest ratio p₁ / p₀. Hence lowest
    ≤ 0 and highest ≥ 1. If p₀ = p₁ up to rounding errors, every λ gives the same policy, and both
    bounds are 1.

    >>> bounds(np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.25, 0.5]))
    Bounds(lowest=array(-1.), highest=array(2.))
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = high / low
    # An action with probability 0 at both levels gives 0 / 0 = NaN, and no bound.
    above = np.fmax.reduce(ratio, axis=-1) - 1
    below = 1 - np.fmin.reduce(ratio, axis=-1)
    same = (above < SUM_TOLERANCE) | (below < SUM_TOLERANCE)
    return Bounds(
        np.where(same, 1.0, -1 / np.where(same, 1.0, above)),
        np.where(same, 1.0, 1 / np.where(same, 1.0, below)),
    )
