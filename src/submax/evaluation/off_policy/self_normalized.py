"""Self-normalized inverse propensity scoring."""

from dataclasses import dataclass
from typing import ClassVar

from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.contracts.weighted_mean import weighted_mean


@dataclass(frozen=True)
class SelfNormalized(OffPolicyEstimator):
    """V = Σ_i w_i r_i / Σ_i w_i with w_i = π(a_i | x_i) / p_i.

    A weighted mean of rewards, so that it is never outside of their range; consistent, with a bias
    of order 1/n.

    Reference: Swaminathan and Joachims (2015), The self-normalized estimator for counterfactual
    learning.
    """

    short: ClassVar[str] = "snips"
    adds_up: ClassVar[bool] = True

    def terms(self, evidence: Evidence) -> Terms:
        return weighted_mean(evidence, evidence.weight)
