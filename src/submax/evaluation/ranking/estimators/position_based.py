"""The estimator under the position-based model of clicks."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError
from submax.evaluation.contracts.counts import mean
from submax.evaluation.ranking.ranking_estimator import RankingEstimator
from submax.evaluation.ranking.ranking_evidence import RankingEvidence


@dataclass(frozen=True)
class PositionBased(RankingEstimator):
    """V = (1/n) Σ_i Σ_k r_ik Σ_j θ_j π(a_ik at j) / Σ_j θ_j p(a_ik at j).

    Unbiased if E[r_k] = θ_k γ(a_k): a user examines position k with probability θ_k and, if so, is
    attracted by the item with probability γ(a). An item then tells about all positions, so that its
    weight is at most the largest of its weights in ``iips``. θ is the ``examination``, of which
    only ratios matter; if it is None, it is estimated by θ_k ∝ (1/n) Σ_i r_ik / p(a_ik at k), which
    needs a log that can place every item at every position.

    Reference: Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay and Wen (2018), Offline evaluation
    of ranking policies with click models. *Departs from the paper:* weights are not clipped, and
    the examination can be estimated.
    """

    examination: tuple[float, ...] | None = None
    short: ClassVar[str] = "pbm"
    assumes: ClassVar[str] = "a click needs a position that is examined and an item that attracts"

    def missing(self, evidence: RankingEvidence) -> str | None:
        if evidence.placed is None or evidence.logged_placed is None:
            return "the probabilities of items at all positions (policies as objects)"
        return None

    def weights(self, evidence: RankingEvidence) -> Floats:
        assert evidence.placed is not None
        assert evidence.logged_placed is not None
        theta = self.examined(evidence)
        below = evidence.logged_placed @ theta
        found: Floats = np.divide(
            evidence.placed @ theta, below, out=np.zeros(below.shape), where=below > 0
        )
        return found

    def examined(self, evidence: RankingEvidence) -> Floats:
        """Return the examination of every position, that of the first is 1, ``[K]``."""
        positions = evidence.reward.shape[1]
        if self.examination is not None:
            theta = np.asarray(self.examination, dtype=np.float64)
            if theta.shape != (positions,) or not (theta > 0).any() or (theta < 0).any():
                raise InputError(
                    f"the examination is {self.examination!r}; {positions} numbers, one for each "
                    "position and none below 0, are allowed: give them, or None to estimate them",
                    parameter="examination",
                )
            return theta
        assert evidence.logged_placed is not None
        own = np.diagonal(evidence.logged_placed, axis1=1, axis2=2)
        found = np.where(evidence.filled, evidence.reward / np.where(own > 0, own, 1.0), 0.0)
        averages = np.array([mean(column, evidence.counts) for column in found.T])
        if not averages[0] > 0:
            # Nothing was earned at the top: positions are then taken to be examined alike.
            return np.ones(positions)
        relative: Floats = np.maximum(averages / averages[0], 0.0)
        return relative
