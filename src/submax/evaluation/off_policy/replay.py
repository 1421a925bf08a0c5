"""The replay estimator."""

from dataclasses import dataclass
from typing import ClassVar

from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.contracts.weighted_mean import weighted_mean


@dataclass(frozen=True)
class Replay(OffPolicyEstimator):
    """V = Σ_i π(a_i | x_i) r_i / Σ_i π(a_i | x_i).

    Replay draws an action from π in every row, keeps the rows in which the logged action was
    drawn, and averages their rewards. This formula replaces the draws by their expectation.
    Propensities are not used, so that the logging policy must have been uniform.

    Reference: Li, Chu, Langford and Wang (2011).
    """

    short: ClassVar[str] = "replay"
    adds_up: ClassVar[bool] = True
    uses_propensities: ClassVar[bool] = False

    def terms(self, evidence: Evidence) -> Terms:
        return weighted_mean(evidence, evidence.probability)
