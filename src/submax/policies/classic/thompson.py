"""Thompson sampling with Beta posteriors."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import at_least
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.core.numerics.categorical import draw, log_prob_of
from submax.policies.classic.arm_statistics import ArmStatistics
from submax.policies.classic.largest_beta import largest_beta
from submax.policies.steppers.thompson_stepper import ThompsonStepper

QUADRATURE_FROM = 64
"""From this number of decisions on, computing the probabilities once by quadrature and drawing
from them costs less than sampling the posterior for each decision."""


@dataclass(frozen=True)
class Thompson(Policy[ArmStatistics]):
    """Draw a value for every arm from its Beta posterior and take the arm with the largest draw.

    The prior of every arm is Beta(α, β), its posterior Beta(α + successes, β + failures). α is
    ``alpha``, β is ``beta``. A reward between the lowest and the highest possible one counts as
    part of a success. π(a) is the probability that a's draw is the largest, ∫ f_a Π_{b≠a} F_b. Few
    decisions are made by sampling the posterior, many decisions by computing π once and drawing
    from it; both have the same distribution.

    Reference: Thompson (1933); Chapelle and Li (2011).
    """

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        # With smaller parameters, Beta draws round to exactly 0 or 1, so that arms tie.
        at_least("alpha", self.alpha, 0.05)
        at_least("beta", self.beta, 0.05)

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ArmStatistics:
        # Raises an error if the bounds of rewards are unknown.
        problem.scale.known_bounds("Thompson sampling with Beta posteriors")
        return ArmStatistics.empty(problem, replicas)

    def act(self, state: ArmStatistics, context: Floats, rng: np.random.Generator) -> ChosenActions:
        rows = context.shape[1]
        if rows >= QUADRATURE_FROM:
            probabilities = self.probabilities(state, context)
            index = draw(probabilities, rows, rng)
            return ChosenActions(
                state.problem.space.action(index), log_prob_of(probabilities, index)
            )
        a, b = self._posterior(state)
        drawn = [rng.beta(a, b).argmax(axis=-1) for _ in range(rows)]
        index = np.stack(drawn, axis=1) if drawn else np.empty((len(a), 0), dtype=np.int64)
        return ChosenActions(state.problem.space.action(index), None)

    def log_prob(self, state: ArmStatistics, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        return log_prob_of(self.probabilities(state, context), state.problem.space.index(action))

    def probabilities(self, state: ArmStatistics, context: Floats) -> Floats:
        return largest_beta(*self._posterior(state))[:, None, :]

    def expected_rewards(self, state: ArmStatistics, context: Floats) -> Floats:
        """Return the means of the posteriors, α / (α + β), in the units of the rewards."""
        a, b = self._posterior(state)
        lowest, highest = state.problem.scale.known_bounds("Thompson sampling")
        means: Floats = lowest + (highest - lowest) * a / (a + b)
        return means[:, None, :]

    def update(
        self, state: ArmStatistics, feedback: Feedback, rng: np.random.Generator
    ) -> ArmStatistics:
        return state.add(feedback)

    def stepper(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Stepper:
        return ThompsonStepper(problem, replicas, self.alpha, self.beta)

    def _posterior(self, state: ArmStatistics) -> tuple[Floats, Floats]:
        successes = state.successes("Thompson sampling")
        return self.alpha + successes, self.beta + state.pulls - successes
