"""Importance sampling of whole sessions."""

from dataclasses import dataclass
from typing import ClassVar

from submax.core.errors import InputError
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms


@dataclass(frozen=True)
class Trajectory(OffPolicyEstimator):
    """V = Σ_i w_i,1:T Σ_t r_it / Σ_i w_i,1:T T_i over sessions i of T_i steps.

    Every row of a session has the weight of the whole session, the product of the weights of all
    its decisions. V is the reward per decision. It varies more than ``per-decision``, and serves
    as a check of it. Consistent if the propensities are right.

    Reference: Precup, Sutton and Singh (2000), Eligibility traces for off-policy policy evaluation.
    """

    short: ClassVar[str] = "trajectory"
    uses_weights: ClassVar[bool] = False
    uses_sessions: ClassVar[bool] = True

    def terms(self, evidence: Evidence) -> Terms:
        weights = evidence.trajectory
        if weights is None:
            raise InputError(
                "the estimator trajectory needs a log with sessions, and this log has none: name "
                "the column, --column session=NAME, or leave the estimator out"
            )
        return Terms(weights.whole * evidence.reward, weights.whole, counts=evidence.counts)
