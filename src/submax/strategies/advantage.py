"""SubMax over many reward levels."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.table import Table
from submax.core.conditioning.weighted_strategy import WeightedStrategy


@dataclass(frozen=True)
class Advantage(WeightedStrategy):
    """Weigh every level by how far its reward lies above the mean: w_l = p_l (r_l − r̄).

    p is the prior of the levels, r their rewards and r̄ = Σ_l p_l r_l. Since p_l π(a | l) =
    q(a) p(l | a), with q the logging policy, the mixture is q(a) (v(a) − v̄): one step of policy
    improvement by positive advantage, with v(a) the mean reward of a after rewards are rounded to
    levels. With two levels it is SubMax. With more levels it prefers actions with a high mean
    reward, while SubMax prefers actions that sometimes earn the highest reward.

    >>> table = Table(
    ...     probabilities=np.array([[0.2, 0.8], [0.8, 0.2], [0.4, 0.6]]),
    ...     levels=np.array([0.0, 1.0, 3.0]), prior=np.array([0.5, 0.3, 0.2]),
    ...     values=np.full(3, np.nan),
    ... )
    >>> Advantage().weights(table).round(2).tolist()
    [-0.45, 0.03, 0.42]
    """

    def weights(self, table: Table) -> Floats:
        """Return weights that sum to zero; a level that was never observed has weight 0."""
        # r_l − r̄ = Σ_k p_k (r_l − r_k), term by term, so that equal levels cancel exactly.
        apart = table.levels[..., :, None] - table.levels[..., None, :]
        weights: Floats = table.prior * np.einsum("...k,...lk->...l", table.prior, apart)
        return weights
