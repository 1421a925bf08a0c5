"""The reward-conditioned policy that chooses slot by slot."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.strategy import Strategy
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.errors import InputError
from submax.core.numerics.categorical import draw, draw_grouped, log_prob_of
from submax.core.running.fallback import standing_for
from submax.core.spaces.space import Space
from submax.estimators.counting import Counting
from submax.models.networks.slot_choices import first_choices, joint_probabilities
from submax.policies.listed import joined, split
from submax.policies.reward_conditioned.conditioned_policy import (
    ConditionedPolicy,
    check_parts,
)
from submax.policies.reward_conditioned.reward_conditioned_state import RewardConditionedState
from submax.strategies.submax import SubMax

ROWS_PER_PART = 2560
"""Rows of all replicas that are decided at a time, to bound memory."""
NETWORK_CONFIDENCE = 0.3
"""The ``confidence_scale`` of tracking with networks, chosen on tuning seeds; see docs/research."""


@dataclass(frozen=True)
class SlotBySlot(ConditionedPolicy):
    """Choose in every slot on its own: π(a | c) = Π_s π_s(a_s | c).

    The ``estimator`` gives the probability of each choice of a slot at each reward level, summed
    over the choices of the other slots. The ``strategy`` turns these into the policy of the slot,
    as if the choices of the slot were the actions. So every slot takes a step of improvement of its
    own, instead of sharing one step for the joint action. Probabilities are exact, and with a
    network the cost grows with the sum of the numbers of choices, not with their product.

    A choice is valued by what it earned together with whatever the other slots chose. The reward of
    a particular combination is found only by chance. With one slot the policy is
    `RewardConditioned`. ``levels`` is the number of reward levels to condition on; None takes that
    of the problem's reward scale.

    Not in the paper; see docs/explanation/theory.md and docs/research.
    """

    estimator: Estimator[Any] = field(default_factory=Counting)
    strategy: Strategy = field(default_factory=SubMax)
    levels: int | None = None

    def __post_init__(self) -> None:
        check_parts(self.estimator, self.strategy, self.levels)

    def check_space(self, space: Space) -> None:
        """Refuse real-valued parts, and strategies that need values of joint actions."""
        if space.reals:
            raise InputError(
                f"the slot-by-slot policy is made for choices, and {space} is real-valued: take "
                "reward-conditioned with the CVAE, such as rcp-cvae-submax"
            )
        if self.strategy.facts.needs_values and space.slots > 1:
            raise InputError(
                f"the {type(self.strategy).__name__} strategy needs the values of policies for "
                "joint actions, and the slot-by-slot policy treats each slot alone: take the "
                "policy reward-conditioned, or another strategy such as submax"
            )

    def act(
        self, state: RewardConditionedState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        self.check_rows(state, context)
        if self._alike(state):
            return self._drawn(state, context[:, :1], context.shape[1], rng)
        parts = split(context, max(1, ROWS_PER_PART // len(context)))
        drawn = [self._drawn(state, part, part.shape[1], rng) for part in parts]
        return ChosenActions(*map(joined, zip(*drawn, strict=True)))

    def log_prob(self, state: RewardConditionedState, context: Floats, action: Actions) -> Floats:
        self.check_rows(state, context)
        state.problem.check_action(action)
        if self._alike(state):
            return _log_prob_of(self.choices(state, context[:, :1]), action)
        rows = max(1, ROWS_PER_PART // len(context))
        pairs = zip(split(context, rows), split(action, rows), strict=True)
        found: Floats = joined(
            [_log_prob_of(self.choices(state, part), chosen) for part, chosen in pairs]
        )
        return found

    def probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        space = state.problem.space
        space.check_listable("a list of probabilities")
        # Without context all rows share one policy.
        rows = context[:, :1] if state.problem.context_width == 0 else context
        return joint_probabilities(
            self.cached_probabilities(state, rows)[..., None, :], space.choices
        )

    def choices(self, state: RewardConditionedState, context: Floats) -> list[Floats]:
        """Return the policy of each slot, ``[R, n, choices]``."""
        sizes = state.problem.space.choices
        return np.split(
            self.cached_probabilities(state, context), first_choices(sizes)[1:], axis=-1
        )

    def compute_probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        """Return the probabilities of all choices, the slots one after the other."""
        belief = self.belief(state, context)
        table = self.table(state, belief)
        tables = [table._replace(probabilities=slot) for slot in belief.prob_of_choices()]
        if table.sample_sizes is not None:
            weights = self.checked_weights(belief).observation_weights_by_slot()
            tables = [
                one._replace(sample_sizes=table.sample_sizes._replace(observation_weight=slot))
                for one, slot in zip(tables, weights, strict=True)
            ]
        return np.concatenate([self.strategy.probabilities(one) for one in tables], axis=-1)

    def _alike(self, state: RewardConditionedState) -> bool:
        """Return whether all rows of a replica have the same probabilities."""
        return state.problem.context_width == 0 or not self.estimator.facts.uses_context

    def _drawn(
        self, state: RewardConditionedState, context: Floats, rows: int, rng: np.random.Generator
    ) -> ChosenActions:
        with standing_for(rows if context.shape[1] == 1 else 1):
            chosen = self.choices(state, context)
        how = draw_grouped if self.grouped_draws else draw
        action = np.stack([how(slot, rows, rng) for slot in chosen], axis=-1)
        return ChosenActions(action, _log_prob_of(chosen, action))


def _log_prob_of(slots: list[Floats], action: Actions) -> Floats:
    """Return the log-probability of actions, ``[R, n]``, under the policies of the slots."""
    found = [log_prob_of(slot, action[..., place]) for place, slot in enumerate(slots)]
    total: Floats = np.add.reduce(found)
    return total
