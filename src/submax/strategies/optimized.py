"""The optimized policy."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.marginalization import ROUNDING, ends
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
    ``table.values``, so the best λ is a bound: the highest where V₁ ≥ V₀, else the lowest. The
    policy is (1 − λ) p₀ + λ p₁.

    Reference: Xu et al. (2024), equations objective-is and bounds.

    *Departs from the paper:* the labels of its two sets of bounds are swapped; see ``bounds``.
    """

    facts: ClassVar[StrategyFacts] = StrategyFacts(needs_listing=True, needs_values=True)

    def weights(self, table: Table) -> Floats:
        """1 − λ on the first level, λ on the last."""
        check_values("optimized", table)
        low, high = table.probabilities[..., 0, :], table.probabilities[..., -1, :]
        lowest, highest = bounds(low, high)
        chosen = np.where(table.values[..., -1] >= table.values[..., 0], highest, lowest)
        return ends(table, 1.0 - chosen, chosen)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """It has no parameters."""
        yield cls()


def check_values(name: str, table: Table) -> None:
    """Refuse a table without the values that the strategy of this ``name`` reads."""
    if not np.all(np.isfinite(table.values)):
        raise InputError(
            f"the {name} strategy needs the logged probability of every decision, "
            "and some feedback had none"
        )


def bounds(low: Floats, high: Floats) -> Bounds:
    """The λ with (1 − λ) p₀ + λ p₁ ≥ 0 for every action; ``[..., M]`` twice ``-> [...]`` twice.

    An action with p₁ > p₀ gives the lower bound −p₀ / (p₁ − p₀), one with p₁ < p₀ the upper bound
    p₀ / (p₀ − p₁); the tightest come from the largest and the smallest ratio p₁ / p₀. Hence lowest
    ≤ 0 and highest ≥ 1. Where p₀ = p₁ but for rounding, every λ gives one policy and both are 1.

    >>> bounds(np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.25, 0.5]))
    Bounds(lowest=array(-1.), highest=array(2.))
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = high / low
    # 0 / 0 is NaN: an action that neither level takes bounds nothing.
    above = np.fmax.reduce(ratio, axis=-1) - 1
    below = 1 - np.fmin.reduce(ratio, axis=-1)
    same = (above < ROUNDING) | (below < ROUNDING)
    return Bounds(
        np.where(same, 1.0, -1 / np.where(same, 1.0, above)),
        np.where(same, 1.0, 1 / np.where(same, 1.0, below)),
    )
