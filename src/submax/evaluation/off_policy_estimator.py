"""Contract of an off-policy estimator."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self

from submax.evaluation.evidence import Evidence
from submax.evaluation.terms import Terms


class OffPolicyEstimator(ABC):
    """From the evidence about a policy to what the policy would have earned.

    ``short`` is its name in tables. The flags say what it relies on: weights of whole actions,
    logged propensities, a model of the rewards, weights of each slot; warnings about these
    concern it.
    """

    short: ClassVar[str]
    uses_weights: ClassVar[bool] = True
    uses_propensities: ClassVar[bool] = True
    uses_model: ClassVar[bool] = False
    uses_slots: ClassVar[bool] = False

    @abstractmethod
    def terms(self, evidence: Evidence) -> Terms:
        """The estimate, as terms whose mean it is."""

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Instances that the tests run."""
