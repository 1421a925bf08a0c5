"""Thompson sampling on a value network with gradient features."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import non_negative, positive, whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.numerics.categorical import log_prob_of
from submax.policies.neural.gradient_belief import GradientBelief
from submax.policies.neural.largest_normal import largest_normal


@dataclass(frozen=True)
class NeuralThompson(Policy[GradientBelief]):
    """Draw a value N(f(a, c), ν² gᵀ U⁻¹ g) for each action and take the largest.

    f is the logit of a value network, g its gradient, ν the ``scale``; U has the diagonal of
    ``ridge`` + Σ g². π(a | c) is the probability that a's draw is the largest, by quadrature.

    Reference: Zhang et al. (2021).
    """

    scale: float = 0.1
    ridge: float = 1.0
    hidden: int = 32
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        non_negative("scale", self.scale)
        positive("ridge", self.ridge)
        whole_number("hidden", self.hidden, at_least=1)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> GradientBelief:
        """Nothing observed."""
        return GradientBelief.empty(problem, replicas, self.hidden, self.ridge)

    def act(
        self, state: GradientBelief, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        """Sample the scores; ties, as before the first feedback, are broken at random."""
        logit, deviation = state.scores(context)
        score = logit + self.scale * deviation * rng.normal(size=logit.shape)
        best = score == score.max(axis=-1, keepdims=True)
        index = np.where(best, rng.random(best.shape), -1.0).argmax(axis=-1)
        return ChosenActions(state.problem.space.action(index), None)

    def log_prob(self, state: GradientBelief, context: Floats, action: Integers) -> Floats:
        """Quadrature."""
        state.problem.check_action(action)
        index = state.problem.space.index(action)
        return log_prob_of(self.probabilities(state, context), index)

    def probabilities(self, state: GradientBelief, context: Floats) -> Floats:
        """Quadrature."""
        logit, deviation = state.scores(context)
        return largest_normal(logit, self.scale * deviation)

    def update(
        self, state: GradientBelief, feedback: Feedback, rng: np.random.Generator
    ) -> GradientBelief:
        """Train on all feedback so far."""
        return state.trained(feedback, self.training, self.ridge, rng)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """A small one, trained briefly."""
        yield cls(scale=0.5, hidden=4, training=Training(steps=6, batch=8, learning_rate=0.05))

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The default."""
        return {"neural-thompson": cls()}
