"""Thompson sampling with logistic regressions."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import positive
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.numerics.categorical import log_prob_of
from submax.policies.logistic.logistic_belief import LogisticBelief
from submax.policies.neural.largest_normal import largest_normal


@dataclass(frozen=True)
class LogisticThompson(Policy[LogisticBelief]):
    """Draw the coefficients of every action and take the action with the highest σ(θ_a · x).

    Every joint action has a logistic regression P(1 | a, c) = σ(θ_a · x), x = (1, c), with the
    posterior N(θ̂_a, Σ_a). For one decision, θ_a · x ~ N(θ̂_a · x, s² xᵀ Σ_a x), so that products are
    drawn instead of coefficients; s is ``width``. The prior is N(0, I / λ), λ is ``precision``.
    π(a) is the probability that the product of a is the largest of independent normal ones.

    Reference: Chapelle and Li (2011), algorithm 3.

    *Departs from the paper:* Σ_a is a full matrix, there only its diagonal is kept, and every
    action has its own coefficients. Decisions of one batch have independent draws.
    """

    width: float = 1.0
    precision: float = 1.0

    def __post_init__(self) -> None:
        positive("width", self.width)
        positive("precision", self.precision)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> LogisticBelief:
        return LogisticBelief.prior(problem, replicas, self.precision)

    def act(
        self, state: LogisticBelief, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        mean, deviation = state.scores(context)
        shape = (*context.shape[:2], mean.shape[-1])
        drawn = mean + self.width * deviation * rng.standard_normal(shape)
        return ChosenActions(state.problem.space.action(drawn.argmax(axis=-1)), None)

    def log_prob(self, state: LogisticBelief, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        return log_prob_of(self.probabilities(state, context), state.problem.space.index(action))

    def probabilities(self, state: LogisticBelief, context: Floats) -> Floats:
        mean, deviation = state.scores(context)
        return largest_normal(mean, self.width * deviation)

    def update(
        self, state: LogisticBelief, feedback: Feedback, rng: np.random.Generator
    ) -> LogisticBelief:
        return state.learned(feedback)
