"""Upper confidence bounds by quantiles of the posterior."""

from dataclasses import dataclass

import numpy as np
import scipy

from submax.core.arrays import Floats
from submax.core.checks import positive
from submax.policies.classic.index_policy import ArmCounts, IndexPolicy


@dataclass(frozen=True)
class BayesUCB(IndexPolicy):
    """Take the arm with the highest quantile of the level 1 − 1 / (t + 1) of its posterior.

    The prior of an arm is Beta(α, β), its posterior Beta(α + successes, β + failures), and t is the
    number of pulls of all arms. If ``pending``, pulls whose reward has not come back count, too,
    see `IndexPolicy`; a pending pull counts as its expected reward.

    Reference: Kaufmann, Cappé and Garivier (2012), with c = 0 as in their experiments.
    """

    alpha: float = 1.0
    beta: float = 1.0
    pending: bool = False

    def __post_init__(self) -> None:
        positive("alpha", self.alpha)
        positive("beta", self.beta)

    def index(self, counts: ArmCounts) -> Floats:
        successes = self.alpha + counts.successes
        failures = self.beta + counts.received - counts.successes
        # A pending pull adds its expected reward, so that the mean stays and the spread falls.
        growth = 1 + (counts.pulls - counts.received) / (successes + failures)
        tail = 1 / (np.maximum(counts.total, 0.0) + 1)
        return np.asarray(
            scipy.special.betainccinv(successes * growth, failures * growth, tail), np.float64
        )
