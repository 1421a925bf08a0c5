"""The gradient bandit: softmax preferences learned by stochastic gradient ascent."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.numerics.tally import tally
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices


@stored("gradient-state")
class GradientState(NamedTuple):
    """The ``preferences [R, A]`` H(a), and the baseline: ``rewards [R]`` / ``observed [R]``.

    ``rewards`` is the sum of all rewards so far, ``observed`` the number of observations.
    """

    problem: Problem
    preferences: Floats
    rewards: Floats
    observed: Floats

    def restricted(self, choices: Choices) -> Self:
        """Return the preferences of the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        return self._replace(
            problem=self.problem.restricted(choices), preferences=self.preferences[:, kept]
        )


@dataclass(frozen=True)
class Gradient(ListingPolicy[GradientState]):
    """Take arms by softmax preferences, and learn the preferences by stochastic gradient ascent.

    π(a) = exp H(a) / Σ_b exp H(b). An observation of arm aⁱ with reward r adds
    η (r − r̄) (1[a = aⁱ] − π(a)) to every H(a). η is ``step``, r̄ is the mean of all rewards so far.
    Observations that come back together are added up with the same π. The default step is the
    larger of the book's two, which are 0.1 and 0.4.

    Reference: Sutton and Barto (2018), section 2.8.
    """

    step: float = 0.4

    def __post_init__(self) -> None:
        positive("step", self.step)

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> GradientState:
        problem.space.check_listable("the gradient bandit")
        nothing = np.zeros(replicas)
        return GradientState(problem, np.zeros((replicas, problem.space.size)), nothing, nothing)

    def probabilities(self, state: GradientState, context: Floats) -> Floats:
        return _softmax(state.preferences)[:, None, :]

    def update(
        self, state: GradientState, feedback: Feedback, rng: np.random.Generator
    ) -> GradientState:
        feedback.check(state.problem)
        present = feedback.weight > 0
        reward = np.where(present, feedback.reward, 0.0)
        rewards = state.rewards + np.sum(feedback.weight * reward, axis=-1)
        observed = state.observed + np.sum(feedback.weight, axis=-1)
        baseline = rewards / np.where(observed > 0, observed, 1.0)
        advantage = feedback.weight * (reward - baseline[:, None])
        index = state.problem.space.index(feedback.action)
        of_chosen = tally(index, advantage, state.preferences.shape[-1])
        of_all = advantage.sum(axis=-1, keepdims=True) * _softmax(state.preferences)
        preferences = state.preferences + self.step * (of_chosen - of_all)
        return GradientState(state.problem, preferences, rewards, observed)


def _softmax(preferences: Floats) -> Floats:
    powers = np.exp(preferences - preferences.max(axis=-1, keepdims=True))
    result: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return result
