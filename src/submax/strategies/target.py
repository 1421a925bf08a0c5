"""The marginalized policy of Kumar et al."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import probability
from submax.core.conditioning.table import Table
from submax.core.conditioning.weighted_strategy import WeightedStrategy
from submax.core.errors import InputError


@dataclass(frozen=True)
class Target(WeightedStrategy):
    """Marginalize over a target distribution of rewards: w_l = q(r_l), never negative.

    ``distribution`` is q, one probability for each level, lowest first. (1, 0) is the negative
    policy, (0, 1) the optimistic one. "observed" fits q to the rewards so far: the probability of a
    level is how often it was observed.

    Reference: Kumar et al. (2019), algorithm 1; Xu et al. (2024), introduction.
    """

    distribution: tuple[float, ...] | Literal["observed"] = (0.1, 0.9)

    def __post_init__(self) -> None:
        if self.distribution == "observed":
            return
        for value in self.distribution:
            probability("each number of distribution", value)
        if not np.isclose(sum(self.distribution), 1.0):
            raise InputError(
                "distribution must be probabilities of the reward levels that sum to 1, "
                f"not {self.distribution}"
            )

    def weights(self, table: Table) -> Floats:
        if self.distribution == "observed":
            return table.prior
        self.check_levels(table.levels.shape[-1])
        return np.broadcast_to(np.array(self.distribution), table.prior.shape)

    def check_levels(self, levels: int) -> None:
        if self.distribution != "observed" and len(self.distribution) != levels:
            raise InputError(
                f"distribution has {len(self.distribution)} probabilities, "
                f"but the problem has {levels} reward levels"
            )
