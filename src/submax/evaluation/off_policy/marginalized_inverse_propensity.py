"""Inverse propensity scoring with weights of groups of actions."""

from dataclasses import dataclass
from typing import ClassVar

from submax.core.errors import InputError
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms


@dataclass(frozen=True)
class MarginalizedInversePropensity(OffPolicyEstimator):
    """V = (1/n) Σ_i π(e_i | x_i) / p(e_i | x_i) r_i, where e is the group of an action.

    π(e | x) is the sum of the probabilities of all actions of the group. Actions with the same
    features are a group. If there are many actions and few groups, the weights are much smaller
    than those of single actions. Unbiased if the reward depends on the action only through its
    group, and if the logging policy could take every group that π takes.

    Reference: Saito and Joachims (2022), Off-policy evaluation for large action spaces via
    embeddings.
    """

    short: ClassVar[str] = "mips"
    uses_weights: ClassVar[bool] = False
    uses_groups: ClassVar[bool] = True

    def terms(self, evidence: Evidence) -> Terms:
        weight = evidence.group_weight
        if weight is None:
            raise InputError(
                "the estimator mips needs a log of plain actions of which some have the same "
                "features, and this log has no such actions: describe the actions "
                "(action_features), or use another estimator, such as dr"
            )
        return Terms(weight * evidence.reward, reach=evidence.reach(weight), counts=evidence.counts)
