"""The default policy: nothing to set, with contexts and without."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.estimators.bayesian_features import BayesianFeatures
from submax.estimators.counting import Counting
from submax.policies.adaptive.posterior_slots import PosteriorSlots
from submax.policies.adaptive.posterior_submax import PosteriorSubMax
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
from submax.strategies.filling import Filling


@dataclass(frozen=True)
class Adaptive(Policy[Any]):
    """Decide by counts if there is no context, and by Bayesian regressions if there is one.

    For plain arms without context it is `RewardConditioned` with fitted counts and the strategy
    `Filling`. With a context it is `PosteriorSubMax`: the ``estimator`` says what each action is
    expected to earn in each context, and SubMax is applied ``depth`` times to its posterior draws.
    For several slots it is `PosteriorSlots`, with and without context, so that no joint action is
    listed. The ``estimator`` plays no part there, nor for plain arms without context. All of them
    fit their parameters to the data and know the probability of every decision.
    """

    estimator: BayesianFeatures = field(default_factory=BayesianFeatures)
    depth: int = 2

    @property
    def facts(self) -> Facts:
        return self.estimator.facts

    def __post_init__(self) -> None:
        whole_number("depth", self.depth, at_least=1, at_most=100)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Any:
        return self.part(problem).init(problem, replicas, rng)

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> ChosenActions:
        return self.part(state.problem).act(state, context, rng)

    def log_prob(self, state: Any, context: Floats, action: Actions) -> Floats:
        return self.part(state.problem).log_prob(state, context, action)

    def update(self, state: Any, feedback: Feedback, rng: np.random.Generator) -> Any:
        return self.part(state.problem).update(state, feedback, rng)

    def probabilities(self, state: Any, context: Floats) -> Floats:
        return self.part(state.problem).probabilities(state, context)

    def record(
        self, state: Any, action: Actions | None = None, *, upcoming: int | None = None
    ) -> Any:
        return self.part(state.problem).record(state, action, upcoming=upcoming)

    def part(self, problem: Problem) -> Policy[Any]:
        """The policy that decides in a problem."""
        if problem.space.slots > 1:
            return self._with_slots
        return self._with_context if problem.context_width else self._without_context

    @cached_property
    def _with_slots(self) -> Policy[Any]:
        return PosteriorSlots(depth=self.depth)

    @cached_property
    def _with_context(self) -> Policy[Any]:
        return PosteriorSubMax(self.estimator, self.depth)

    @cached_property
    def _without_context(self) -> Policy[Any]:
        return RewardConditioned(Counting("fitted"), Filling())

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Few features."""
        yield cls(BayesianFeatures(features=24, draws=8))

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        return {"rcp-adaptive": cls()}
