"""Upper confidence bounds by the Bernoulli divergence, for cascading clicks."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative
from submax.policies.classic.bernoulli_divergence import upper_bound
from submax.policies.slates.cascade_policy import CascadePolicy


@dataclass(frozen=True)
class CascadeKLUCB(CascadePolicy):
    """Show the items with the highest q for which T_i kl(w̄_i, q) ≤ ln t + c ln ln t.

    T_i is how often the item was looked at, w̄_i the share of clicks among these, t the number of
    rounds, kl the divergence between Bernoulli distributions, and c is ``exploration``. A level
    below 0, which c ln ln t gives for t < e, counts as 0. `CascadePolicy` says what rewards mean.

    Reference: Kveton et al. (2015), Cascading bandits: learning to rank in the cascade model,
    algorithm CascadeKL-UCB with c = 3.
    """

    exploration: float = 3.0

    def __post_init__(self) -> None:
        non_negative("exploration", self.exploration)

    def bound(self, share: Floats, looked: Floats, rounds: Floats) -> Floats:
        logarithm = np.log(rounds)
        # Below e the second logarithm is negative; 1e-6 keeps it finite in the first round.
        level = logarithm + self.exploration * np.log(np.maximum(logarithm, 1e-6))
        return upper_bound(share, np.maximum(level, 0.0) / looked)
