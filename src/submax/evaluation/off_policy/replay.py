"""Replay."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from submax.evaluation.evidence import Evidence
from submax.evaluation.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.terms import Terms
from submax.evaluation.weighted_mean import weighted_mean


@dataclass(frozen=True)
class Replay(OffPolicyEstimator):
    """V = Σ_i π(a_i | x_i) r_i / Σ_i π(a_i | x_i): the mean reward of the rows that agree.

    Replay draws an action of π in every row and keeps those where it is the logged one; this is
    what it gives on average over the draws. Propensities are not looked at, so that the log must
    be of a uniform policy.

    Reference: Li, Chu, Langford and Wang (2011).
    """

    short: ClassVar[str] = "replay"
    uses_propensities: ClassVar[bool] = False

    def terms(self, evidence: Evidence) -> Terms:
        """The rewards, as likely as each row is to be kept."""
        return weighted_mean(evidence, evidence.probability)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """It has no parameters."""
        yield cls()
