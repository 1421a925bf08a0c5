"""Base class of the policies on a value network with gradient features."""

from dataclasses import dataclass, field

import numpy as np

from submax.core.checks import positive, whole_number
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.policies.neural.gradient_belief import GradientBelief


@dataclass(frozen=True, kw_only=True)
class GradientFeaturePolicy(Policy[GradientBelief]):
    """A policy that decides by the mean and the deviation that a `GradientBelief` gives.

    ``hidden`` is the number of units in each of the value network's two layers, ``training`` says
    how the network is trained at each update, and ``ridge`` is the prior precision of the gradient
    features.
    """

    ridge: float = 1.0
    hidden: int = 32
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        positive("ridge", self.ridge)
        whole_number("hidden", self.hidden, at_least=1)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> GradientBelief:
        return GradientBelief.empty(problem, replicas, self.hidden, self.ridge)

    def update(
        self, state: GradientBelief, feedback: Feedback, rng: np.random.Generator
    ) -> GradientBelief:
        return state.trained(feedback, self.training, self.ridge, rng)
