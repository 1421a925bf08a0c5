"""Upper confidence bounds for cascading clicks."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative
from submax.policies.slates.cascade_policy import CascadePolicy


@dataclass(frozen=True)
class CascadeUCB(CascadePolicy):
    """Show the items with the highest w̄_i + √(c ln t / T_i), the highest first.

    T_i is how often the item was looked at, w̄_i the share of clicks among these, t the number of
    rounds, and c is ``exploration``. `CascadePolicy` says what rewards mean.

    Reference: Kveton et al. (2015), Cascading bandits: learning to rank in the cascade model,
    algorithm CascadeUCB1 with c = 1.5.
    """

    exploration: float = 1.5

    def __post_init__(self) -> None:
        non_negative("exploration", self.exploration)

    def bound(self, share: Floats, looked: Floats, rounds: Floats) -> Floats:
        return share + np.sqrt(self.exploration * np.log(rounds) / looked)
