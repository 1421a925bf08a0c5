"""The doubly robust estimator."""

from dataclasses import dataclass
from typing import ClassVar

from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms


@dataclass(frozen=True)
class DoublyRobust(OffPolicyEstimator):
    """V = (1/n) Σ_i [Σ_a π(a | x_i) q̂(x_i, a) + w_i (r_i − q̂(x_i, a_i))].

    Consistent if either the propensities or the model q̂ of the rewards is right. The better the
    model, the smaller the variance.

    Reference: Dudík, Langford and Li (2011).
    """

    short: ClassVar[str] = "dr"
    adds_up: ClassVar[bool] = True
    uses_model: ClassVar[bool] = True

    def terms(self, evidence: Evidence) -> Terms:
        error = evidence.reward - evidence.predicted
        reach = evidence.reach(evidence.weight, corrects_model=True)
        terms = evidence.expected + evidence.weight * error
        return Terms(terms, reach=reach, counts=evidence.counts)
