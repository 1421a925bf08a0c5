"""The direct method."""

from dataclasses import dataclass
from typing import ClassVar

from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms


@dataclass(frozen=True)
class DirectMethod(OffPolicyEstimator):
    """V = (1/n) Σ_i Σ_a π(a | x_i) q̂(x_i, a), where q̂ is a model of the rewards.

    The variance is small, and the bias is that of the model. The confidence interval does not
    include the model's error.
    """

    short: ClassVar[str] = "dm"
    adds_up: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = False
    uses_propensities: ClassVar[bool] = False
    uses_model: ClassVar[bool] = True

    def terms(self, evidence: Evidence) -> Terms:
        return Terms(evidence.expected, counts=evidence.counts)
