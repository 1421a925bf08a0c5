"""The clipped-λ policy."""

from dataclasses import dataclass

from submax.core.arrays import Floats
from submax.core.checks import non_negative
from submax.core.conditioning.marginalization import ends
from submax.core.conditioning.table import Table
from submax.core.conditioning.weighted_strategy import WeightedStrategy


@dataclass(frozen=True)
class Clipped(WeightedStrategy):
    """One λ for all tables, negative mass clipped: w = (1 − λ, λ) on lowest and highest level.

    π(a) = normalize(max(λ p₁(a) − (λ − 1) p₀(a), 0)). λ = 1 is optimistic, λ up to the bound of
    the optimized policy clips nothing, λ → ∞ is SubMax.
    """

    weight: float = 4.0

    def __post_init__(self) -> None:
        non_negative("weight", self.weight)

    def weights(self, table: Table) -> Floats:
        return ends(table, 1.0 - self.weight, self.weight)
