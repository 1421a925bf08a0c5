"""Indexed minimum empirical divergence."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.policies.classic.bernoulli_divergence import divergence
from submax.policies.classic.index_policy import ArmCounts, IndexPolicy


@dataclass(frozen=True)
class IMED(IndexPolicy):
    """Take the arm with the lowest n kl(mean, best mean) + ln n.

    n is the arm's number of pulls and kl the divergence between Bernoulli distributions. An arm
    that was never pulled is taken first. With single decisions the regret reaches the lower bound
    of Lai and Robbins asymptotically (proof in the reference). If ``pending``, pulls whose reward
    has not come back count, too, see `IndexPolicy`.

    Reference: Honda and Takemura (2015).
    """

    pending: bool = False

    def index(self, counts: ArmCounts) -> Floats:
        pulls = np.maximum(counts.pulls, 1.0)
        index = pulls * divergence(counts.means, counts.best) + np.log(pulls)
        return np.where(counts.pulls > 0, -index, np.inf)
