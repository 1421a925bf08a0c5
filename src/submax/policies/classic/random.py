"""Uniform choice."""

from collections.abc import Iterator, Mapping
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


@stored("random-state")
class RandomState(NamedTuple):
    """Nothing is learned."""

    problem: Problem


@dataclass(frozen=True)
class Random(Policy[RandomState]):
    """Every joint action with the same probability or density, whatever comes back."""

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> RandomState:
        """Remember the problem."""
        return RandomState(problem)

    def act(self, state: RandomState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        """Draw uniformly."""
        state.problem.check_context(context)
        action = state.problem.space.uniform(context.shape[:2], rng)
        return ChosenActions(action, self.log_prob(state, context, action))

    def log_prob(self, state: RandomState, context: Floats, action: Actions) -> Floats:
        """−log of the number of joint actions, or of their volume."""
        return np.full(action.shape[:2], -state.problem.space.log_measure)

    def probabilities(self, state: RandomState, context: Floats) -> Floats:
        """One over their number."""
        size = state.problem.space.size
        return np.full((len(context), 1, size), 1 / size)

    def update(
        self, state: RandomState, feedback: Feedback, rng: np.random.Generator
    ) -> RandomState:
        """Learn nothing."""
        feedback.check(state.problem)
        return state

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """It has no parameters."""
        yield cls()

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The baseline of every figure."""
        return {"random": cls()}
