"""Base class of policies that weigh arms exponentially by estimated sums of rewards or losses."""

from abc import abstractmethod
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.numerics.tally import tally
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices


@stored("exponential-weights-state")
class ExponentialWeightsState(NamedTuple):
    """``estimate [R, A]``, estimated sums for every arm, and ``observed [R]`` rows so far."""

    problem: Problem
    estimate: Floats
    observed: Floats

    def restricted(self, choices: Choices) -> Self:
        """Return the sums of the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        return self._replace(
            problem=self.problem.restricted(choices), estimate=self.estimate[:, kept]
        )


class ExponentialWeights(ListingPolicy[ExponentialWeightsState]):
    """Learn sums by importance weighting; subclasses say what is estimated, and how to decide.

    The probability of every action at the time of its decision must be known, also if its reward
    comes late.
    """

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False, needs_propensities=True)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> ExponentialWeightsState:
        problem.scale.known_bounds(f"the {type(self).__name__} policy")
        problem.space.check_listable(f"the {type(self).__name__} policy")
        shape = (replicas, problem.space.size)
        return ExponentialWeightsState(problem, np.zeros(shape), np.zeros(replicas))

    def update(
        self, state: ExponentialWeightsState, feedback: Feedback, rng: np.random.Generator
    ) -> ExponentialWeightsState:
        feedback.check(state.problem)
        if feedback.log_prob is None:
            raise InputError(
                f"the {type(self).__name__} policy needs log_prob, the log-probability with which "
                "each action was chosen, and feedback has none: pass that of act"
            )
        there = feedback.weight > 0
        low, high = state.problem.scale.known_bounds(type(self).__name__)
        gain = np.where(there, (feedback.reward - low) / (high - low), 0.0)
        probability = np.exp(np.where(there, feedback.log_prob, 0.0))
        size = state.estimate.shape[1]
        # The number of each row, counted from 1; absent rows are not counted.
        number = state.observed[:, None] + np.cumsum(there, axis=1)
        terms = feedback.weight * self.estimate(gain, probability, number, size)
        index = state.problem.space.index(feedback.action)
        added = tally(np.where(there, index, 0), np.where(there, terms, 0.0), size)
        return state._replace(
            estimate=state.estimate + added, observed=state.observed + there.sum(axis=1)
        )

    @abstractmethod
    def estimate(self, gain: Floats, probability: Floats, number: Floats, arms: int) -> Floats:
        """Return what each row adds to the sum of its arm.

        ``gain`` is the reward scaled to 0 … 1, ``probability`` that of the decision, ``number`` the
        number of the row.
        """


def softmax(score: Floats) -> Floats:
    """Return probabilities proportional to the exponentials of the scores, on the last axis."""
    mass = np.exp(score - score.max(axis=-1, keepdims=True))
    probabilities: Floats = mass / mass.sum(axis=-1, keepdims=True)
    return probabilities
