"""The optimistic policy."""

from dataclasses import dataclass

from submax.core.arrays import Floats
from submax.core.conditioning.marginalization import ends
from submax.core.conditioning.table import Table
from submax.core.conditioning.weighted_strategy import WeightedStrategy


@dataclass(frozen=True)
class Optimistic(WeightedStrategy):
    """Condition on the highest reward level: w = (0, …, 0, 1).

    Reference: Xu et al. (2024), section 3.2; Kumar et al. (2019).
    """

    def weights(self, table: Table) -> Floats:
        return ends(table, 0.0, 1.0)
