"""The doubly robust estimator with weights that are divided by their sum."""

from dataclasses import dataclass
from typing import ClassVar

from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.off_policy.doubly_robust import DoublyRobust


@dataclass(frozen=True)
class SelfNormalizedDoublyRobust(OffPolicyEstimator):
    """V = (1/n) Σ_i Σ_a π(a | x_i) q̂(x_i, a) + Σ_i w_i (r_i − q̂(x_i, a_i)) / Σ_i w_i.

    As ``dr``, but the correction of the model does not depend on how much the weights of this log
    happen to add up to. It varies less than ``dr`` if the model is off by about the same
    everywhere, and it has a bias of the order 1/n. Without any weight it is ``dr``.

    With the mean weight w̄ and the correction d = Σ w_i (r_i − q̂(x_i, a_i)) / Σ w_i it is ``dr``
    with the weights w_i / w̄ and the model q̂ + d, whose terms are also those of the delta method.

    Reference: Thomas and Brunskill (2016), the weighted doubly robust estimator, for one step.
    """

    short: ClassVar[str] = "sndr"
    uses_model: ClassVar[bool] = True

    def terms(self, evidence: Evidence) -> Terms:
        weight = evidence.weight
        total = float(weight.sum())
        if not total > 0:
            return DoublyRobust().terms(evidence)
        correction = float(weight @ (evidence.reward - evidence.predicted)) / total
        shifted = evidence._replace(
            weight=weight * (len(weight) / total),
            predicted=evidence.predicted + correction,
            expected=evidence.expected + correction,
        )
        return DoublyRobust().terms(shifted)
