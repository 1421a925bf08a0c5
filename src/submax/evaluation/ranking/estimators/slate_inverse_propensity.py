"""Inverse propensity scoring of whole slates."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.ranking.ranking_estimator import RankingEstimator
from submax.evaluation.ranking.ranking_evidence import RankingEvidence


@dataclass(frozen=True)
class SlateInversePropensity(RankingEstimator):
    """V = (1/n) Σ_i w_i Σ_k r_ik, where w_i is the weight of the whole slate, Π_k w_ik.

    Unbiased whatever users do, because it treats a slate as one action. The weights grow
    exponentially with the number of positions.
    """

    short: ClassVar[str] = "sips"
    assumes: ClassVar[str] = "nothing about users; the weights are those of whole slates"

    def missing(self, evidence: RankingEvidence) -> str | None:
        return None

    def weights(self, evidence: RankingEvidence) -> Floats:
        whole = evidence.weight.prod(axis=1, keepdims=True)
        return np.broadcast_to(whole, evidence.reward.shape)
