"""Base class of the policies with sample-average uncertainty."""

from dataclasses import dataclass, field

import numpy as np

from submax.core.checks import below_one, whole_number
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.policies.uncertainty.residual_belief import ResidualBelief


@dataclass(frozen=True, kw_only=True)
class SampleAveragePolicy(Policy[ResidualBelief]):
    """A policy that decides by the values and standard errors that a `ResidualBelief` gives.

    ``hidden`` is the number of units in each of the value network's two layers, ``training`` says
    how the network is trained at each update, and ``dropout`` is the probability of leaving out a
    unit in training.
    """

    hidden: int = 32
    dropout: float = 0.0
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        whole_number("hidden", self.hidden, at_least=1)
        below_one("dropout", self.dropout)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ResidualBelief:
        return ResidualBelief.empty(problem, replicas, self.hidden)

    def update(
        self, state: ResidualBelief, feedback: Feedback, rng: np.random.Generator
    ) -> ResidualBelief:
        return state.trained(feedback, self.training, self.dropout, rng)
