"""Thompson sampling with linear models."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.categorical import draw, log_prob_of
from submax.core.checks import positive
from submax.core.decision import Decision
from submax.core.feedback import Feedback
from submax.core.policy import Policy
from submax.core.problem import Problem
from submax.policies.largest_normal import largest_normal
from submax.policies.linear_statistics import LinearStatistics

QUADRATURE_FROM = 64
"""With so many decisions from one posterior, one quadrature costs less than sampling each."""


@dataclass(frozen=True)
class LinearThompson(Policy[LinearStatistics]):
    """Draw coefficients for every action from their posterior and take the best action.

    θ_a ~ N(θ̂_a, scale² A_a⁻¹), with A_a = ridge · I + Σ x xᵀ, θ̂_a = A_a⁻¹ Σ r x over the rows of
    action a, and x = (1, context). Actions are independent, so that the scores x·θ_a of one context
    are independent normals N(x·θ̂_a, scale² xᵀ A_a⁻¹ x): they are drawn themselves, and π(a | x) is
    the probability that a's is the largest. The default scale is the largest standard deviation
    that a reward between 0 and 1 can have.

    Reference: Agrawal and Goyal (2013).

    *Departs from the paper:* every joint action has coefficients of its own instead of features of
    its own; the scale is constant; every decision has a draw of its own.
    """

    scale: float = 0.5
    ridge: float = 1.0

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        positive("ridge", self.ridge)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> LinearStatistics:
        """The prior."""
        return LinearStatistics.empty(problem, replicas, self.ridge)

    def act(self, state: LinearStatistics, context: Floats, rng: np.random.Generator) -> Decision:
        """Sample the scores, or the table where all rows share one and that is cheaper."""
        state.problem.check_context(context)
        space = state.problem.space
        rows = context.shape[1]
        if state.problem.context_width == 0 and rows >= QUADRATURE_FROM:
            ((_, probabilities),) = self._probabilities(state, context)
            index = draw(probabilities, rows, rng)
            return Decision(space.action(index), log_prob_of(probabilities, index))
        drawn = [
            self._sampled(mean, deviation, block.stop - block.start, rng)
            for block, mean, deviation in state.posterior(context)
        ]
        return Decision(space.action(np.concatenate(drawn, axis=1)), None)

    def log_prob(self, state: LinearStatistics, context: Floats, action: Integers) -> Floats:
        """By quadrature over the scores of each row."""
        state.problem.check_context(context)
        state.problem.check_action(action)
        index = state.problem.space.index(action)
        found = [
            log_prob_of(probabilities, index[:, rows])
            for rows, probabilities in self._probabilities(state, context)
        ]
        return np.concatenate(found, axis=1)

    def probabilities(self, state: LinearStatistics, context: Floats) -> Floats:
        """The table of all rows."""
        state.problem.check_context(context)
        return np.concatenate([found for _, found in self._probabilities(state, context)], axis=1)

    def update(
        self, state: LinearStatistics, feedback: Feedback, rng: np.random.Generator
    ) -> LinearStatistics:
        """Add to the regressions."""
        return state.add(feedback)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """The default, and a wide posterior."""
        yield cls()
        yield cls(scale=2.0, ridge=0.5)

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The default."""
        return {"linear-thompson": cls()}

    def _probabilities(
        self, state: LinearStatistics, context: Floats
    ) -> Iterator[tuple[slice, Floats]]:
        for rows, mean, deviation in state.posterior(context):
            yield rows, largest_normal(mean, self.scale * deviation)

    def _sampled(
        self, mean: Floats, deviation: Floats, count: int, rng: np.random.Generator
    ) -> Integers:
        """The actions with the largest scores: ``[R, count]``."""
        # Rows that share one posterior are drawn one by one: there is no table of all their scores.
        calls, rows = (1, count) if mean.shape[1] == count else (count, 1)
        shape = (len(mean), rows, mean.shape[2])
        index = [
            np.argmax(mean + self.scale * deviation * rng.standard_normal(shape), axis=-1)
            for _ in range(calls)
        ]
        return np.concatenate(index, axis=1) if index else np.empty((len(mean), 0), dtype=np.int64)
