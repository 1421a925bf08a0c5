"""Inverse propensity scoring of every position by itself."""

from dataclasses import dataclass
from typing import ClassVar

from submax.core.arrays import Floats
from submax.evaluation.ranking.ranking_estimator import RankingEstimator
from submax.evaluation.ranking.ranking_evidence import RankingEvidence


@dataclass(frozen=True)
class IndependentInversePropensity(RankingEstimator):
    """V = (1/n) Σ_i Σ_k π(a_ik at k) / p(a_ik at k) r_ik.

    Unbiased if the reward at a position depends only on the item there and on the position: this is
    the item-position model.

    Reference: Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay and Wen (2018), Offline evaluation
    of ranking policies with click models.
    """

    short: ClassVar[str] = "iips"
    assumes: ClassVar[str] = "the reward at a position depends only on its item and the position"

    def missing(self, evidence: RankingEvidence) -> str | None:
        return None if evidence.marginal_weight is not None else "marginal probabilities"

    def weights(self, evidence: RankingEvidence) -> Floats:
        assert evidence.marginal_weight is not None
        return evidence.marginal_weight
