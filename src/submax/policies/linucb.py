"""Upper confidence bounds of linear models."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.categorical import draw, log_prob_of
from submax.core.checks import non_negative, positive
from submax.core.decision import Decision
from submax.core.feedback import Feedback
from submax.core.policy import Policy
from submax.core.problem import Problem
from submax.policies.linear_statistics import LinearStatistics

ROUNDING = 1e-10
"""Scores that differ by less than this share of the largest are equal."""


@dataclass(frozen=True)
class LinUCB(Policy[LinearStatistics]):
    """Take the action with the highest x·θ̂_a + α √(xᵀ A_a⁻¹ x), x being (1, context).

    Every joint action a has a ridge regression of its own on the rows where it was taken:
    A_a = ridge · I + Σ x xᵀ and θ̂_a = A_a⁻¹ Σ r x.

    Reference: Li et al. (2010), algorithm 1 (disjoint linear models).

    *Departs from the paper:* actions whose scores are equal share the probability, so that
    decisions taken together before any feedback are spread over all actions. The intercept is
    part of x, and the ridge need not be 1.
    """

    alpha: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        non_negative("alpha", self.alpha)
        positive("ridge", self.ridge)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> LinearStatistics:
        """The ridge alone."""
        return LinearStatistics.empty(problem, replicas, self.ridge)

    def act(self, state: LinearStatistics, context: Floats, rng: np.random.Generator) -> Decision:
        """Draw among the best."""
        state.problem.check_context(context)
        index, log_prob = [], []
        for rows, probabilities in self._probabilities(state, context):
            drawn = draw(probabilities, rows.stop - rows.start, rng)
            index.append(drawn)
            log_prob.append(log_prob_of(probabilities, drawn))
        action = state.problem.space.action(np.concatenate(index, axis=1))
        return Decision(action, np.concatenate(log_prob, axis=1))

    def log_prob(self, state: LinearStatistics, context: Floats, action: Integers) -> Floats:
        """Minus the logarithm of how many share the best score; −∞ for all other actions."""
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
        """The default, and no bonus."""
        yield cls()
        yield cls(alpha=0.0, ridge=0.5)

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The default."""
        return {"linucb": cls()}

    def _probabilities(
        self, state: LinearStatistics, context: Floats
    ) -> Iterator[tuple[slice, Floats]]:
        for rows, mean, deviation in state.posterior(context):
            score = mean + self.alpha * deviation
            slack = ROUNDING * np.abs(score).max(axis=-1, keepdims=True)
            best = score >= score.max(axis=-1, keepdims=True) - slack
            yield rows, best / best.sum(axis=-1, keepdims=True)
