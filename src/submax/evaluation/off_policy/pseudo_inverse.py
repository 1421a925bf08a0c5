"""The pseudo-inverse estimator for slots."""

from dataclasses import dataclass
from typing import ClassVar

from submax.core.errors import InputError
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms


@dataclass(frozen=True)
class PseudoInverse(OffPolicyEstimator):
    """V = (1/n) Σ_i (1 − S + Σ_s π_s(a_is | x_i) / p_is) r_i over S slots.

    The weights of the slots are added, not multiplied, so that they do not grow exponentially with
    the number of slots. Unbiased if the expected reward is a sum of one effect of each slot, and
    the log chose the slots independently of each other, each with its propensity p_s.

    Reference: Swaminathan et al. (2017), Off-policy evaluation for slate recommendation; for
    slots chosen independently their pseudo-inverse has this form.
    """

    short: ClassVar[str] = "pseudo-inverse"
    uses_weights: ClassVar[bool] = False
    uses_slots: ClassVar[bool] = True

    def terms(self, evidence: Evidence) -> Terms:
        if evidence.slot_weight is None:
            raise InputError(
                "the pseudo-inverse needs a log of several slots, and this log has plain arms: "
                "use another estimator, such as dr"
            )
        weight = 1 - evidence.slot_weight.shape[1] + evidence.slot_weight.sum(axis=1)
        return Terms(weight * evidence.reward, reach=evidence.reach(weight), counts=evidence.counts)
