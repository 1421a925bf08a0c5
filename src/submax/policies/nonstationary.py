"""Policies that forget: discounted feedback and sliding windows."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import below_one, non_negative, whole_number
from submax.core.numerics import tally
from submax.core.policy import Policy, PolicyTraits, TabularPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.serialization import stored
from submax.core.spaces import Choices
from submax.models.memory import Buffer, Memory
from submax.policies.arm_statistics import ArmStatistics
from submax.policies.thompson import Thompson


@stored("forgetting-state")
class ForgettingState(NamedTuple):
    """``arms``, the weighted pulls and rewards; ``history``, the rows of a window, or None."""

    problem: Problem
    arms: ArmStatistics
    history: Buffer | None

    def restricted(self, choices: Choices) -> Self:
        """Return the state with the joint actions of these choices alone, without history."""
        arms = self.arms.restricted(choices)
        return self._replace(problem=arms.problem, arms=arms, history=None)

    @classmethod
    def empty(cls, problem: Problem, replicas: int, *, window: bool) -> Self:
        """Return the state before any feedback; rows are stored if there is a window."""
        history = Buffer.empty(replace(problem, context_width=0), replicas) if window else None
        return cls(problem, ArmStatistics.empty(problem, replicas), history)

    def discounted(self, feedback: Feedback, discount: float) -> Self:
        """Return the state after feedback; every new row multiplies the weight of older ones."""
        feedback.check(self.problem)
        there = feedback.weight > 0
        new = there.sum(axis=1)
        later = np.maximum(new[:, None] - np.cumsum(there, axis=1), 0)
        weight = feedback.weight * discount**later
        added = self._counted(feedback, weight)
        kept = (discount**new)[:, None]
        arms = self.arms._replace(
            pulls=kept * self.arms.pulls + added.pulls,
            rewards=kept * self.arms.rewards + added.rewards,
        )
        return self._replace(arms=arms)

    def windowed(self, feedback: Feedback, window: int, rng: np.random.Generator) -> Self:
        """Return the state after feedback, in which only the last ``window`` rows count."""
        feedback.check(self.problem)
        assert self.history is not None, "this state was made without a window"
        nothing = np.zeros((*feedback.reward.shape, 0))
        rows = feedback._replace(context=nothing)
        history = self.history.add(rows, Memory(window=window), rng)
        kept = Feedback(
            np.zeros((*history.reward.shape, 0)),
            history.action.astype(np.int64),
            history.reward,
            None,
            history.weight,
        )
        return self._replace(arms=self._counted(kept, history.weight), history=history)

    def _counted(self, feedback: Feedback, weight: Floats) -> ArmStatistics:
        index, size = self.problem.space.index(feedback.action), self.arms.pulls.shape[1]
        reward = weight * np.where(weight > 0, feedback.reward, 0.0)
        return self.arms._replace(
            pulls=tally(index, weight, size), rewards=tally(index, reward, size)
        )


class ForgettingUCB(TabularPolicy[ForgettingState]):
    """Take the arm with the highest mean + 2 √(ξ ln n / N_a); equal arms share the probability.

    N_a is the weighted number of pulls of the arm, n their sum, or the length of the window if this
    is less, and ξ is ``exploration``. An arm without weight is taken first. Rewards are scaled to
    0 … 1.
    """

    exploration: float

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(uses_context=False, forgets=True)

    def probabilities(self, state: ForgettingState, context: Floats) -> Floats:
        arms = state.arms
        pulls = np.where(arms.pulls > 0, arms.pulls, 1.0)
        mean = arms.successes(f"the {type(self).__name__} policy") / pulls
        logarithm = np.log(np.maximum(arms.pulls.sum(axis=-1, keepdims=True), 1.0))
        index = np.where(
            arms.pulls > 0, mean + 2 * np.sqrt(self.exploration * logarithm / pulls), np.inf
        )
        best = index == index.max(axis=-1, keepdims=True)
        listed: Floats = best / best.sum(axis=-1, keepdims=True)
        return listed[:, None]


class ForgettingThompson(Policy[ForgettingState]):
    """Decide as `Thompson` does, by weighted pulls and rewards; the prior is never forgotten."""

    alpha: float
    beta: float

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(uses_context=False, forgets=True)

    @property
    def thompson(self) -> Thompson:
        """The rule for the statistics; it also checks the prior."""
        return Thompson(self.alpha, self.beta)

    def act(
        self, state: ForgettingState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        return self.thompson.act(state.arms, context, rng)

    def log_prob(self, state: ForgettingState, context: Floats, action: Integers) -> Floats:
        return self.thompson.log_prob(state.arms, context, action)

    def probabilities(self, state: ForgettingState, context: Floats) -> Floats:
        return self.thompson.probabilities(state.arms, context)


@dataclass(frozen=True)
class DiscountedUCB(ForgettingUCB):
    """Take the arm with the highest X̄_a + 2 √(ξ ln n / N_a) of discounted sums.

    N_a = Σ_s γ^(t−s) 1{a_s = a}, X̄_a = Σ_s γ^(t−s) r_s 1{a_s = a} / N_a, n = Σ_a N_a. γ is
    ``discount``, ξ is ``exploration``. Rewards are scaled to 0 … 1.

    Reference: Garivier and Moulines (2011), On upper-confidence bound policies for switching bandit
    problems, section 2.1, with B = 1 and ξ = 0.6.
    """

    discount: float = 0.999
    exploration: float = 0.6

    def __post_init__(self) -> None:
        below_one("discount", self.discount)
        non_negative("exploration", self.exploration)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ForgettingState:
        problem.scale.known_bounds("discounted UCB")
        return ForgettingState.empty(problem, replicas, window=False)

    def update(
        self, state: ForgettingState, feedback: Feedback, rng: np.random.Generator
    ) -> ForgettingState:
        return state.discounted(feedback, self.discount)


@dataclass(frozen=True)
class DiscountedThompson(ForgettingThompson):
    """Thompson sampling from Beta(α + S_a, β + F_a), where S and F are discounted by γ.

    With every row of any arm, all successes S and failures F are multiplied by γ, and the row is
    added to its arm. α is ``alpha``, β is ``beta``, γ is ``discount``. An arm that is not taken
    returns to the prior.

    Reference: Raj and Kalyani (2017), Taming non-stationary bandits: a Bayesian approach.
    """

    discount: float = 0.999
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        below_one("discount", self.discount)
        _ = self.thompson

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ForgettingState:
        problem.scale.known_bounds("discounted Thompson sampling")
        return ForgettingState.empty(problem, replicas, window=False)

    def update(
        self, state: ForgettingState, feedback: Feedback, rng: np.random.Generator
    ) -> ForgettingState:
        return state.discounted(feedback, self.discount)


@dataclass(frozen=True)
class SlidingWindowUCB(ForgettingUCB):
    """Take the arm with the highest X̄_a + 2 √(ξ ln min(t, τ) / N_a) of the last τ rows.

    N_a and X̄_a are the number of rows of the arm among them and their mean reward. τ is ``window``,
    ξ is ``exploration``. Rewards are scaled to 0 … 1.

    Reference: Garivier and Moulines (2011), section 2.2, with B = 1 and ξ = 0.6.
    """

    window: int = 1000
    exploration: float = 0.6

    def __post_init__(self) -> None:
        whole_number("window", self.window, at_least=1)
        non_negative("exploration", self.exploration)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ForgettingState:
        problem.scale.known_bounds("sliding-window UCB")
        return ForgettingState.empty(problem, replicas, window=True)

    def update(
        self, state: ForgettingState, feedback: Feedback, rng: np.random.Generator
    ) -> ForgettingState:
        return state.windowed(feedback, self.window, rng)


@dataclass(frozen=True)
class SlidingWindowThompson(ForgettingThompson):
    """Thompson sampling from Beta(α + S_a, β + F_a) of the successes and failures of the last rows.

    α is ``alpha``, β is ``beta``; the last ``window`` rows count, of all arms together.

    Reference: Trovò et al. (2020), Sliding-window Thompson sampling for non-stationary settings.
    """

    window: int = 1000
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        whole_number("window", self.window, at_least=1)
        _ = self.thompson

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ForgettingState:
        problem.scale.known_bounds("sliding-window Thompson sampling")
        return ForgettingState.empty(problem, replicas, window=True)

    def update(
        self, state: ForgettingState, feedback: Feedback, rng: np.random.Generator
    ) -> ForgettingState:
        return state.windowed(feedback, self.window, rng)
