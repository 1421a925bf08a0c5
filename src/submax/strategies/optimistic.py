"""The optimistic policy."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.strategy import Strategy
from submax.core.table import Table


@dataclass(frozen=True)
class Optimistic(Strategy):
    """Condition on the highest reward level: w = (0, …, 0, 1).

    Reference: Xu et al. (2024), section 3.2; Kumar et al. (2019).
    """

    def weights(self, table: Table) -> Floats:
        """All weight on the last level."""
        weights = np.zeros_like(table.prior)
        weights[..., -1] = 1.0
        return weights

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """It has no parameters."""
        yield cls()
