"""The estimator for rewards that depend on the items above."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.contracts.counts import mean
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.ranking.ranking_estimator import RankingEstimator
from submax.evaluation.ranking.ranking_evidence import RankingEvidence


@dataclass(frozen=True)
class RewardInteraction(RankingEstimator):
    """V = Σ_k Σ_i w_i,1:k r_ik / Σ_i w_i,1:k, with w_i,1:k = Π_j≤k w_ij.

    The reward of a position is weighted by the items down to this position. Consistent if users
    read from the top, so that a reward depends on the items above and at its position: the cascade
    model is a special case. The weights of each position are normalized, which reduces the
    variance and adds a bias of order 1/n; with ``normalized`` = False they are not, and the
    estimate is unbiased.

    Reference: McInerney, Brost, Chandar, Mehrotra and Carterette (2020), Counterfactual evaluation
    of slate recommendations with sequential reward interactions.
    """

    normalized: bool = True
    short: ClassVar[str] = "rips"
    assumes: ClassVar[str] = "the reward at a position depends on the items above and at it"

    def missing(self, evidence: RankingEvidence) -> str | None:
        return None

    def weights(self, evidence: RankingEvidence) -> Floats:
        return evidence.above()

    def terms(self, evidence: RankingEvidence) -> Terms:
        plain = super().terms(evidence)
        if not self.normalized:
            return plain
        weight, counts = self.weights(evidence), evidence.counts
        averages = np.array([mean(column, counts) for column in weight.T])
        sums = np.array([mean(column, counts) for column in (weight * evidence.reward).T])
        with np.errstate(invalid="ignore", divide="ignore"):
            values: Floats = np.where(averages > 0, sums / averages, np.nan)
            # Ratios are linearized: their terms have the mean v and the variance of the ratio.
            terms = values + weight * (evidence.reward - values) / averages
        return plain._replace(numerator=terms.sum(axis=1))
