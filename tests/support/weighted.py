"""A policy of the user's own, in a file."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submax import ChosenActions, Policy, PolicyTraits, Problem
from submax.core.numerics import log_prob_of


class WeightedState(NamedTuple):
    problem: Problem
    rows: np.ndarray


@dataclass(frozen=True)
class Weighted(Policy[WeightedState]):
    """Each action by its weight, the first ones where there are more; it counts its rows."""

    weights: tuple[float, ...]

    @property
    def traits(self):
        return PolicyTraits(uses_context=False)

    def init(self, problem, replicas, rng):
        return WeightedState(problem, np.zeros(replicas))

    def act(self, state, context, rng):
        probabilities = self.probabilities(state, context)
        number = rng.choice(probabilities.shape[-1], size=context.shape[:2], p=probabilities[0, 0])
        action = state.problem.space.action(number)
        return ChosenActions(action, self.log_prob(state, context, action))

    def log_prob(self, state, context, action):
        return log_prob_of(self.probabilities(state, context), state.problem.space.index(action))

    def probabilities(self, state, context):
        weights = np.array(self.weights[: state.problem.space.size])
        return np.tile(weights / weights.sum(), (len(context), 1, 1))

    def update(self, state, feedback, rng):
        return state._replace(rows=state.rows + feedback.weight.sum(axis=1))
