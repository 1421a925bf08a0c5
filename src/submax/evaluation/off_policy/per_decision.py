"""Per-decision importance sampling of sessions."""

from dataclasses import dataclass
from typing import ClassVar

from submax.core.errors import InputError
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms


@dataclass(frozen=True)
class PerDecision(OffPolicyEstimator):
    """V = Σ_i Σ_t w_i,1:t r_it / Σ_i Σ_t w_i,1:t−1 over sessions i, with w_i,1:t = Π_s≤t w_is.

    The reward of a step is weighted by all decisions of its session up to this step, because
    earlier decisions changed what came after. The denominator is the expected number of steps of
    a session under the policy, so that V is the reward per decision even if the policy makes
    sessions longer. Consistent if the propensities are right.

    Reference: Precup, Sutton and Singh (2000), Eligibility traces for off-policy policy
    evaluation, for the numerator.
    """

    short: ClassVar[str] = "per-decision"
    uses_weights: ClassVar[bool] = False
    uses_sessions: ClassVar[bool] = True

    def terms(self, evidence: Evidence) -> Terms:
        weights = evidence.trajectory
        if weights is None:
            raise InputError(
                "the estimator per-decision needs a log with sessions, and this log has none: name "
                "the column, --column session=NAME, or leave the estimator out"
            )
        return Terms(weights.through * evidence.reward, weights.before, counts=evidence.counts)
