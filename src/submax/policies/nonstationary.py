"""Thompson sampling that forgets: discounted feedback and sliding windows."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import below_one, whole_number
from submax.core.policy import Policy, PolicyTraits
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.memory import Buffer, Memory
from submax.policies.arm_statistics import ArmStatistics
from submax.policies.thompson import Thompson


@serializable("forgetting-state")
class ForgettingState(NamedTuple):
    """``arms``, the weighted pulls and rewards; ``history``, the rows of a window, or None."""

    problem: Problem
    arms: ArmStatistics
    history: Buffer | None = None

    def restricted(self, choices: Choices) -> Self:
        """Return the state with the joint actions of these choices alone, for deciding."""
        arms = self.arms.restricted(choices)
        return self._replace(problem=arms.problem, arms=arms, history=None)


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

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ForgettingState:
        return ForgettingState(problem, self.thompson.init(problem, replicas, rng))

    def act(
        self, state: ForgettingState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        return self.thompson.act(state.arms, context, rng)

    def log_prob(self, state: ForgettingState, context: Floats, action: Integers) -> Floats:
        return self.thompson.log_prob(state.arms, context, action)

    def probabilities(self, state: ForgettingState, context: Floats) -> Floats:
        return self.thompson.probabilities(state.arms, context)


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

    def update(
        self, state: ForgettingState, feedback: Feedback, rng: np.random.Generator
    ) -> ForgettingState:
        there = feedback.weight > 0
        new = there.sum(axis=1)
        later = np.maximum(new[:, None] - np.cumsum(there, axis=1), 0)
        feedback.check(state.problem)
        kept = (self.discount**new)[:, None]
        arms = state.arms._replace(pulls=kept * state.arms.pulls, rewards=kept * state.arms.rewards)
        weighted = feedback._replace(weight=feedback.weight * self.discount**later)
        return state._replace(arms=arms.add(weighted))


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
        rows = Buffer.empty(replace(problem, context_width=0), replicas)
        return super().init(problem, replicas, rng)._replace(history=rows)

    def update(
        self, state: ForgettingState, feedback: Feedback, rng: np.random.Generator
    ) -> ForgettingState:
        feedback.check(state.problem)
        assert state.history is not None, "this state has no history"
        nothing = np.zeros((*feedback.reward.shape, 0))
        history = state.history.add(
            feedback._replace(context=nothing), Memory(window=self.window), rng
        )
        arms = ArmStatistics.empty(state.problem, len(history.filled))
        return state._replace(
            arms=arms.with_rows(history.action.astype(np.int64), history.reward, history.weight),
            history=history,
        )
