"""The contract of off-policy estimators."""

from abc import ABC, abstractmethod
from typing import ClassVar

from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.terms import Terms


class OffPolicyEstimator(ABC):
    """Estimates from the evidence about a policy what the policy would have earned.

    ``short`` is the name of the estimator in tables. The flags say what the estimator relies on:
    weights of whole actions, logged propensities, a model of the rewards, weights of each slot,
    weights of groups of actions, weights of sessions.
    A caution about one of these is attached to its estimates. ``adds_up`` says that the terms of a
    row do not depend on other rows, once a threshold is given, so that a log can be read in parts.
    """

    short: ClassVar[str]
    uses_weights: ClassVar[bool] = True
    uses_propensities: ClassVar[bool] = True
    uses_model: ClassVar[bool] = False
    uses_slots: ClassVar[bool] = False
    uses_groups: ClassVar[bool] = False
    uses_sessions: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False

    @abstractmethod
    def terms(self, evidence: Evidence) -> Terms:
        """Return the terms whose mean, or ratio of means, is the estimate."""
