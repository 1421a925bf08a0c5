"""A policy of its own for every slot, each of which learns from its own reward."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.running.stored import stored
from submax.core.spaces.arms import Arms
from submax.core.spaces.space import Choices
from submax.estimators.counting import Counting
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
from submax.strategies.submax import SubMax


@stored("per-slot-state")
class PerSlotState(NamedTuple):
    """The state of the policy of each slot."""

    problem: Problem
    slots: tuple[Any, ...]


def _submax() -> Policy[Any]:
    return RewardConditioned(Counting(), SubMax())


@dataclass(frozen=True)
class PerSlot(Policy[PerSlotState]):
    """Let one copy of ``policy`` choose in every slot: π(a | c) = Π_s π_s(a_s | c).

    If the feedback has a reward for each slot (`Feedback.slot_reward`), the copy of slot s learns
    from the rewards of slot s: what another slot earned is no noise for it. This is right if a
    slot's reward depends on its own choice only, and finds the best joint action if the whole
    reward is the sum of the slots' rewards. A reward that is NaN is left out. Without rewards of
    slots, every copy learns from the reward of the joint action.

    Reference: Chen, Wang and Yuan (2013), combinatorial bandits with a reward for each base arm
    (semi-bandit feedback).
    """

    policy: Policy[Any] = field(default_factory=_submax)

    @property
    def facts(self) -> Facts:
        return self.policy.facts

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> PerSlotState:
        if problem.space.reals:
            raise InputError(
                f"the per-slot policy is made for slots of choices, and {problem.space} has "
                "real-valued parts: take rcp-cvae-submax"
            )
        problems = [_problem_of(problem, slot) for slot in range(problem.space.slots)]
        return PerSlotState(
            problem, tuple(self.policy.init(one, replicas, rng) for one in problems)
        )

    def act(self, state: PerSlotState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        state.problem.check_context(context)
        chosen = [self.policy.act(one, context, rng) for one in state.slots]
        action = np.concatenate([one.action for one in chosen], axis=-1)
        log_probs = [
            self.policy.log_prob(inner, context, one.action)
            if one.log_prob is None
            else one.log_prob
            for inner, one in zip(state.slots, chosen, strict=True)
        ]
        return ChosenActions(action, np.sum(log_probs, axis=0))

    def log_prob(self, state: PerSlotState, context: Floats, action: Actions) -> Floats:
        state.problem.check_context(context)
        state.problem.check_action(action)
        found: Floats = np.sum(
            [
                self.policy.log_prob(inner, context, action[..., slot : slot + 1])
                for slot, inner in enumerate(state.slots)
            ],
            axis=0,
        )
        return found

    def probabilities(self, state: PerSlotState, context: Floats) -> Floats:
        state.problem.check_context(context)
        state.problem.space.check_listable("per-slot")
        product = np.ones((*context.shape[:2], 1))
        for inner in state.slots:
            own = self.policy.probabilities(inner, context)
            size = product.shape[-1] * own.shape[-1]
            product = product[..., :, None] * own[..., None, :]
            product = product.reshape(*context.shape[:2], size)
        return product

    def restricted(self, state: PerSlotState, choices: Choices) -> PerSlotState | None:
        """Restrict every slot by itself; None if the inner policy cannot be restricted."""
        slots = [
            self.policy.restricted(inner, (slot,))
            for inner, slot in zip(state.slots, choices, strict=True)
        ]
        if any(inner is None for inner in slots):
            return None
        return PerSlotState(state.problem.restricted(choices), tuple(slots))

    def update(
        self, state: PerSlotState, feedback: Feedback, rng: np.random.Generator
    ) -> PerSlotState:
        feedback.check(state.problem)
        slots = [
            self.policy.update(inner, _feedback_of(feedback, slot), rng)
            for slot, inner in enumerate(state.slots)
        ]
        return state._replace(slots=tuple(slots))

    def record(
        self, state: PerSlotState, action: Actions | None = None, *, upcoming: int | None = None
    ) -> PerSlotState:
        slots = [
            self.policy.record(
                inner,
                None if action is None else action[..., slot : slot + 1],
                upcoming=upcoming,
            )
            for slot, inner in enumerate(state.slots)
        ]
        return state._replace(slots=tuple(slots))


def _problem_of(problem: Problem, slot: int) -> Problem:
    """The problem of one slot: its choices as arms."""
    features = (problem.action_features[slot],) if problem.action_features else ()
    scale = problem.scale if problem.slot_scale is None else problem.slot_scale
    space = Arms(problem.space.choices[slot])
    return Problem(space, problem.context_width, scale, () if features == ((),) else features)


def _feedback_of(feedback: Feedback, slot: int) -> Feedback:
    """The feedback on the choice of one slot; a reward that is unknown has the weight 0.

    The logged probability stays that of the joint action, because that of the choice is not known.
    Weights of one over it are right up to a factor that is the same for all choices: summed over
    the other slots, they count the joint actions of a choice.
    """
    reward, weight = feedback.reward, feedback.weight
    if feedback.slot_reward is not None:
        given = feedback.slot_reward[..., slot]
        known = np.isfinite(given)
        reward, weight = np.where(known, given, 0.0), np.where(known, weight, 0.0)
    return Feedback(
        feedback.context, feedback.action[..., slot : slot + 1], reward, feedback.log_prob, weight
    )
