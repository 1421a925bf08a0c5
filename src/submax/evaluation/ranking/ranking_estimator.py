"""The contract of estimators of rankings."""

from abc import ABC, abstractmethod
from typing import ClassVar

from submax.core.arrays import Floats
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.ranking.ranking_evidence import RankingEvidence


class RankingEstimator(ABC):
    """Estimates the expected sum of the rewards of a slate, Σ_k r_k, under another policy.

    ``short`` is its name in tables, and ``assumes`` is what has to be true, in words.
    """

    short: ClassVar[str]
    assumes: ClassVar[str]

    @abstractmethod
    def missing(self, evidence: RankingEvidence) -> str | None:
        """Return what the estimator needs and the evidence does not have; None if nothing."""

    @abstractmethod
    def weights(self, evidence: RankingEvidence) -> Floats:
        """Return the factor of the reward at every position, ``[n, K]``."""

    def terms(self, evidence: RankingEvidence) -> Terms:
        """Return the terms, one for each slate, whose mean is the estimate."""
        weight = self.weights(evidence)
        return Terms(
            (weight * evidence.reward).sum(axis=1),
            reach=evidence.reach(weight),
            counts=evidence.counts,
        )
