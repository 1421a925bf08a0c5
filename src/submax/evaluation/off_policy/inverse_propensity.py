"""Inverse propensity scoring."""

from dataclasses import dataclass
from typing import ClassVar

from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.contracts.terms import Terms


@dataclass(frozen=True)
class InversePropensity(OffPolicyEstimator):
    """V = (1/n) Σ_i w_i r_i with w_i = π(a_i | x_i) / p_i.

    Unbiased if the propensities are right and the logging policy could take every action that π
    takes.

    Reference: Horvitz and Thompson (1952).
    """

    short: ClassVar[str] = "ips"
    adds_up: ClassVar[bool] = True

    def terms(self, evidence: Evidence) -> Terms:
        weight = evidence.weight
        return Terms(weight * evidence.reward, reach=evidence.reach(weight), counts=evidence.counts)
