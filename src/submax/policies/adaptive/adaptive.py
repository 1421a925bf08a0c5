"""The default policy, which has no hyper-parameter that has to be set."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from submax.core.arrays import Floats
from submax.core.checks import whole_number
from submax.core.contracts.facts import Facts
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.wrapper_policy import WrapperPolicy
from submax.core.rewards.binary import Binary
from submax.estimators.bayesian_features import BayesianFeatures
from submax.estimators.counting import Counting
from submax.policies.adaptive.logistic_submax import LogisticSubMax
from submax.policies.adaptive.per_slot import PerSlot
from submax.policies.adaptive.posterior_slots import PosteriorSlots
from submax.policies.adaptive.posterior_submax import PosteriorSubMax
from submax.policies.adaptive.predictive_mixture import PredictiveMixture
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
from submax.strategies.submax import SubMax
from submax.strategies.tracking import Tracking

MOST_MIXED_NUMBERS = 12
"""Contexts with more numbers than this are left to the regressions on kernels alone. With more, the
mixture loses a few per cent on tables before it knows which policy predicts best."""


@dataclass(frozen=True)
class Adaptive(WrapperPolicy):
    """Decide by counts if there is no context, and by Bayesian regressions if there is one.

    - For arms without context it is `RewardConditioned` with counts whose smoothing and memory are
      fitted, and the strategy `Tracking`.
    - For arms with a context it is `PosteriorSubMax`: the ``estimator`` predicts the reward of each
      action, and SubMax is applied ``depth`` times to each of its posterior draws. If rewards are 0
      or 1 and the context has at most 12 numbers, it is a `PredictiveMixture` of this, of counts
      that ignore the context, and of `LogisticSubMax`: the policy that predicted rewards best
      decides.
    - For several slots, with or without context, it is `PosteriorSlots`, which does not list joint
      actions and does not use the ``estimator``.
    - For several slots that have a reward each, it is `PerSlot`: every slot is decided as arms are.

    All four fit their parameters to the data and know the probability of every decision. Not in
    the paper; see docs/research.
    """

    estimator: BayesianFeatures = field(default_factory=BayesianFeatures)
    depth: int = 2

    @property
    def facts(self) -> Facts:
        return self.estimator.facts

    def __post_init__(self) -> None:
        whole_number("depth", self.depth, at_least=1, at_most=100)

    def wrapped(self, problem: Problem) -> Policy[Any]:
        if problem.slot_scale is not None:
            return self._with_slot_rewards
        if problem.space.slots > 1:
            return self._with_slots
        if not problem.context_width:
            return self._without_context
        mixed = (
            isinstance(problem.scale, Binary)
            and problem.context_width <= MOST_MIXED_NUMBERS
            # Only the estimator makes use of action features.
            and not problem.action_features
        )
        return self._choosing_by_predictions if mixed else self._with_context

    def expected_rewards(self, state: Any, context: Floats) -> Floats | None:
        return self.wrapped(state.problem).expected_rewards(state, context)

    @cached_property
    def _with_slots(self) -> Policy[Any]:
        return PosteriorSlots(depth=self.depth)

    @cached_property
    def _with_slot_rewards(self) -> Policy[Any]:
        # In the problem of one slot there are no rewards of slots, so that this does not recur.
        return PerSlot(self)

    @cached_property
    def _with_context(self) -> Policy[Any]:
        return PosteriorSubMax(self.estimator, self.depth)

    @cached_property
    def _choosing_by_predictions(self) -> Policy[Any]:
        memory = self.estimator.memory
        counts = RewardConditioned(Counting(memory=memory), SubMax())
        return PredictiveMixture((counts, LogisticSubMax(memory=memory), self._with_context))

    @cached_property
    def _without_context(self) -> Policy[Any]:
        return RewardConditioned(Counting("fitted", memory="fitted"), Tracking())
