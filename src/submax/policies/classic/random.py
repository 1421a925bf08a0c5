"""The uniform policy."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices


@stored("random-state")
class RandomState(NamedTuple):
    """The problem alone: this policy learns nothing."""

    problem: Problem

    def restricted(self, choices: Choices) -> Self:
        """Return the problem with these choices alone."""
        return self._replace(problem=self.problem.restricted(choices))


@dataclass(frozen=True)
class Random(Policy[RandomState]):
    """Take every joint action with the same probability or density, whatever the feedback.

    π(a) = 1 / M with M joint actions, or 1 / V if actions have real-valued parts and volume V. It
    has no parameters.
    """

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False, learns=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> RandomState:
        return RandomState(problem)

    def act(self, state: RandomState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        state.problem.check_context(context)
        action = state.problem.space.uniform(context.shape[:2], rng)
        return ChosenActions(action, self.log_prob(state, context, action))

    def log_prob(self, state: RandomState, context: Floats, action: Actions) -> Floats:
        return np.full(action.shape[:2], -state.problem.space.log_measure)

    def probabilities(self, state: RandomState, context: Floats) -> Floats:
        size = state.problem.space.size
        return np.full((len(context), 1, size), 1 / size)

    def update(
        self, state: RandomState, feedback: Feedback, rng: np.random.Generator
    ) -> RandomState:
        feedback.check(state.problem)
        return state
