"""The SubMax policy."""

from dataclasses import dataclass

from submax.core.arrays import Floats
from submax.core.conditioning.marginalization import ends
from submax.core.conditioning.table import Table
from submax.core.conditioning.weighted_strategy import WeightedStrategy


@dataclass(frozen=True)
class SubMax(WeightedStrategy):
    """Subtract the lowest level from the highest, keep what is positive.

    π(a) = normalize(max(p₁(a) − p₀(a), 0)), with p₀ and p₁ the rows of the lowest and highest
    level. It is the limit of the clipped policy as λ → ∞; its weights −1 and 1 sum to zero instead
    of one. With q the logging policy, v the value of an arm and v̄ its mean under q,
    p₁ − p₀ = q (v − v̄) / (v̄ (1 − v̄)): one step of policy improvement by positive advantage. The
    policy is uniform if no action is likelier given a high reward than given a low one, and until
    both levels have been observed.

    >>> import numpy as np
    >>> table = Table(
    ...     probabilities=np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
    ...     levels=np.array([0.0, 1.0]), prior=np.array([0.9, 0.1]), values=np.array([0.1, 0.2]),
    ... )
    >>> SubMax().probabilities(table).tolist()
    [0.0, 0.0, 1.0]

    Reference: Xu et al. (2024), equation gm-inference-submax.
    """

    def weights(self, table: Table) -> Floats:
        return ends(table, -1.0, 1.0)
