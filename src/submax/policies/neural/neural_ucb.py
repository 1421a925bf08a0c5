"""Upper confidence bounds on a value network."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative, positive, whole_number
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.policies.neural.gradient_belief import GradientBelief
from submax.policies.neural.highest import highest


@dataclass(frozen=True)
class NeuralUCB(ListingPolicy[GradientBelief]):
    """Take the action with the highest f(a, c) + γ √(gᵀ U⁻¹ g).

    f is the logit of a value network, g its gradient, γ the ``width`` of the bound; U has the
    diagonal of ``ridge`` + Σ g². Before the first feedback all actions are equal.

    Reference: Zhou et al. (2020).
    """

    width: float = 0.1
    ridge: float = 1.0
    hidden: int = 32
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        non_negative("width", self.width)
        positive("ridge", self.ridge)
        whole_number("hidden", self.hidden, at_least=1)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> GradientBelief:
        """Nothing observed."""
        return GradientBelief.empty(problem, replicas, self.hidden, self.ridge)

    def probabilities(self, state: GradientBelief, context: Floats) -> Floats:
        """All on the highest bound."""
        logit, deviation = state.scores(context)
        return highest(logit + self.width * deviation)

    def update(
        self, state: GradientBelief, feedback: Feedback, rng: np.random.Generator
    ) -> GradientBelief:
        """Train on all feedback so far."""
        return state.trained(feedback, self.training, self.ridge, rng)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """A small one, trained briefly."""
        yield cls(hidden=4, training=Training(steps=6, batch=8, learning_rate=0.05))

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The default."""
        return {"neural-ucb": cls()}
