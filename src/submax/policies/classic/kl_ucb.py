"""Upper confidence bounds by the Bernoulli divergence."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative
from submax.policies.classic.bernoulli_divergence import upper_bound
from submax.policies.classic.index_policy import ArmCounts, IndexPolicy


@dataclass(frozen=True)
class KLUCB(IndexPolicy):
    """Take the arm with the highest q for which n kl(mean, q) ≤ ln t + c ln ln t.

    n is the arm's number of pulls, t that of all arms, kl the divergence between Bernoulli
    distributions, and c is ``exploration``; the authors recommend c = 0. An arm that was never
    pulled is taken first. If ``pending``, pulls whose reward has not come back count, too, see
    `IndexPolicy`.

    Reference: Garivier and Cappé (2011).
    """

    pending: bool = False
    exploration: float = 0.0

    def __post_init__(self) -> None:
        non_negative("exploration", self.exploration)

    def index(self, counts: ArmCounts) -> Floats:
        logarithm = np.log(np.maximum(counts.total, 1.0))
        level = logarithm + self.exploration * np.log(np.maximum(logarithm, 1.0))
        bound = upper_bound(counts.means, level / np.maximum(counts.pulls, 1.0))
        return np.where(counts.pulls > 0, bound, np.inf)
