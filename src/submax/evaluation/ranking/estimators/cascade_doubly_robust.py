"""The doubly robust estimator for users who read from the top."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.ranking.ranking_estimator import RankingEstimator
from submax.evaluation.ranking.ranking_evidence import RankingEvidence


@dataclass(frozen=True)
class CascadeDoublyRobust(RankingEstimator):
    """V = (1/n) Σ_i Σ_k [w_i,1:k (r_ik − q̂_k(a_ik)) + w_i,1:k−1 E_π[q̂_k(a) | a_i,1:k−1]].

    q̂_k(a) predicts the rewards from position k on. Unbiased under the assumption of ``rips``,
    whatever q̂ is; the better q̂, the smaller the variance.

    Reference: Kiyohara, Saito, Matsuhiro, Narita, Shimizu and Yamamoto (2022), Doubly robust
    off-policy evaluation for ranking policies under the cascade behavior model.
    """

    short: ClassVar[str] = "cascade-dr"
    assumes: ClassVar[str] = "the reward at a position depends on the items above and at it"

    def missing(self, evidence: RankingEvidence) -> str | None:
        if evidence.predicted is None or evidence.expected is None:
            return "the probabilities of all items at each position (policies as objects)"
        return None

    def weights(self, evidence: RankingEvidence) -> Floats:
        return evidence.above()

    def terms(self, evidence: RankingEvidence) -> Terms:
        assert evidence.predicted is not None
        assert evidence.expected is not None
        weight = self.weights(evidence)
        before = np.concatenate([np.ones((len(weight), 1)), weight[:, :-1]], axis=1)
        of_model = np.where(
            evidence.filled, before * evidence.expected - weight * evidence.predicted, 0.0
        ).sum(axis=1)
        low, high = evidence.reach(weight)
        return Terms(
            of_model + (weight * evidence.reward).sum(axis=1),
            reach=(float(of_model.min()) + low, float(of_model.max()) + high),
            counts=evidence.counts,
        )
