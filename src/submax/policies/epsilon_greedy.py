"""Uniform, ε-greedy and posterior-greedy decisions, and the gradient bandit."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Actions, Floats
from submax.core.checks import Positive, Probability
from submax.core.numerics import highest, tally
from submax.core.policy import Policy, PolicyTraits, TabularPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.policies.arm_statistics import ArmPolicy, ArmStatistics, kept_columns


@serializable("random-state")
class RandomState(NamedTuple):
    """The problem alone: this policy learns nothing."""

    problem: Problem

    def restricted(self, choices: Choices) -> Self:
        return self._replace(problem=self.problem.restricted(choices))


@dataclass(frozen=True)
class Random(Policy[RandomState]):
    """Take every joint action with the same probability or density, whatever the feedback.

    π(a) = 1 / M with M joint actions, or 1 / V if actions have real-valued parts and volume V. It
    has no parameters.
    """

    traits = PolicyTraits(uses_context=False, learns=False)

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


@dataclass(frozen=True)
class EpsilonGreedy(ArmPolicy, TabularPolicy[ArmStatistics]):
    """Explore uniformly with probability ε, otherwise take the arm with the highest mean reward.

    π(a) = ε / K + (1 − ε) / T if a is one of the T arms with the highest mean, otherwise ε / K. K
    is the number of arms, ε is ``epsilon``. An arm that was never pulled has mean 0.

    Reference: Sutton and Barto (2018), section 2.2.

    *Departs from the paper:* Xu et al. (2024) write of "a chance of ε for picking the arm with the
    best estimated value"; here, as is usual, ε is the probability of exploring.
    """

    needs_bounds: ClassVar[bool] = False
    epsilon: Probability = 0.1

    def probabilities(self, state: ArmStatistics, context: Floats) -> Floats:
        means = state.means()
        mixed: Floats = self.epsilon / means.shape[-1] + (1 - self.epsilon) * highest(means)
        return mixed[:, None, :]


@dataclass(frozen=True)
class PosteriorGreedy(ArmPolicy, TabularPolicy[ArmStatistics]):
    """Take the arm with the highest posterior mean (α + successes) / (α + β + pulls).

    The prior of every arm is Beta(α, β). Ties are broken at random for every decision. An
    optimistic prior explores: an arm is left only when its mean has fallen below those of others.

    Reference: Bayati et al. (2020) on greedy decisions with many arms.
    """

    alpha: Positive = 1.0
    beta: Positive = 1.0

    def probabilities(self, state: ArmStatistics, context: Floats) -> Floats:
        successes = self.alpha + state.successes("the PosteriorGreedy policy")
        means: Floats = successes / (self.alpha + self.beta + state.pulls)
        return highest(means)[:, None]


@serializable("gradient-state")
class GradientState(NamedTuple):
    """The ``preferences [R, A]`` H(a), and the baseline: ``rewards [R]`` / ``observed [R]``.

    ``rewards`` is the sum of all rewards so far, ``observed`` the number of observations.
    """

    problem: Problem
    preferences: Floats
    rewards: Floats
    observed: Floats

    def restricted(self, choices: Choices) -> Self:
        return kept_columns(self, choices, "preferences")


@dataclass(frozen=True)
class Gradient(TabularPolicy[GradientState]):
    """Take arms by softmax preferences, and learn the preferences by stochastic gradient ascent.

    π(a) = exp H(a) / Σ_b exp H(b). An observation of arm aⁱ with reward r adds
    η (r − r̄) (1[a = aⁱ] − π(a)) to every H(a). η is ``step``, r̄ is the mean of all rewards so far.
    Observations that come back together are added up with the same π. The default step is the
    larger of the book's two, which are 0.1 and 0.4.

    Reference: Sutton and Barto (2018), section 2.8.
    """

    step: Positive = 0.4

    traits = PolicyTraits(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> GradientState:
        problem.space.check_listable("the gradient bandit")
        nothing = np.zeros(replicas)
        return GradientState(problem, np.zeros((replicas, problem.space.size)), nothing, nothing)

    def probabilities(self, state: GradientState, context: Floats) -> Floats:
        return scipy.special.softmax(state.preferences, axis=-1)[:, None, :]

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
        of_all = advantage.sum(axis=-1, keepdims=True) * scipy.special.softmax(
            state.preferences, axis=-1
        )
        preferences = state.preferences + self.step * (of_chosen - of_all)
        return GradientState(state.problem, preferences, rewards, observed)
