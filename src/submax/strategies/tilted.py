"""The observed distribution of rewards, tilted towards high rewards."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive
from submax.core.conditioning.table import Table
from submax.core.conditioning.weighted_strategy import WeightedStrategy


@dataclass(frozen=True)
class Tilted(WeightedStrategy):
    """Marginalize over a target distribution w_l ∝ p_l exp(r_l / (β s)), never negative.

    p_l is how often level l occurs, r_l its reward, and s the standard deviation of rewards under
    p. β is ``temperature``: the lower, the more weight have high rewards. Of all distributions with
    the same mean, this one has the smallest divergence from p. As β → 0 it is the optimistic
    policy on the highest level that occurs, as β → ∞ the logging policy.

    Reference: Kumar et al. (2019), section 4.

    *Departs from the paper:* p is the distribution of a few levels, not a normal one, and β is
    measured in standard deviations.

    >>> table = Table(
    ...     probabilities=np.array([[0.2, 0.8], [0.8, 0.2]]), levels=np.array([0.0, 1.0]),
    ...     prior=np.array([0.5, 0.5]), values=np.full(2, np.nan),
    ... )
    >>> Tilted(temperature=2.0).weights(table).round(3).tolist()
    [0.269, 0.731]
    """

    temperature: float = 0.5

    def __post_init__(self) -> None:
        positive("temperature", self.temperature)

    def weights(self, table: Table) -> Floats:
        mean = (table.prior * table.levels).sum(axis=-1, keepdims=True)
        square = (table.prior * (table.levels - mean) ** 2).sum(axis=-1, keepdims=True)
        spread = np.where(square > 0, np.sqrt(square), 1.0)
        # Levels that never occur are left out of the maximum, which only avoids an overflow.
        power = (table.levels - mean) / (self.temperature * spread)
        power = np.where(table.prior > 0, power, -np.inf)
        mass = table.prior * np.exp(power - power.max(axis=-1, keepdims=True))
        weights: Floats = mass / mass.sum(axis=-1, keepdims=True)
        return weights
