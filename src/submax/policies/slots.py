"""Policies for joint choices that decide slot by slot."""

from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import Allowed, NonNegative, whole_number
from submax.core.conditioning import Estimator, Strategy
from submax.core.errors import InputError, standing_for
from submax.core.numerics import draw, draw_grouped, log_prob_of
from submax.core.policy import Policy, PolicyTraits
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Arms, Choices, Space
from submax.estimators.counting import Counting
from submax.models.networks.choices import first_choices, joint_probabilities
from submax.models.regression.bayesian import known
from submax.models.regression.context_belief import RegressionRows
from submax.models.regression.slot_belief import SlotBelief, SlotSettings
from submax.policies.arm_statistics import by_rows
from submax.policies.reward_conditioned import (
    ConditionedPolicy,
    RewardConditioned,
    RewardConditionedState,
)
from submax.strategies.iterated import submax_of
from submax.strategies.weighted import SubMax

ROWS_PER_PART = 2560
"""Rows of all replicas that are decided at a time, to bound memory."""


def check_choices(who: str, space: Space) -> None:
    """Raise an ``InputError`` if an action has real-valued parts."""
    if space.reals:
        raise InputError(
            f"{who} needs discrete choices, but {space} has real-valued parts: use "
            "grid-linear-thompson, fourier-thompson or rcp-cvae-submax"
        )


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

    def check_space(self, space: Space) -> None:
        check_choices("the slot-by-slot policy", space)
        if self.strategy.traits.needs_values and space.slots > 1:
            raise InputError(
                f"the {type(self.strategy).__name__} strategy needs the values of policies for "
                "joint actions, and the slot-by-slot policy treats each slot separately: use the "
                "policy reward-conditioned, or another strategy such as submax"
            )

    def act(
        self, state: RewardConditionedState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        self.check_rows(state, context)
        how = draw_grouped if self.grouped_draws else draw

        def drawn(part: Floats, rows: int) -> ChosenActions:
            with standing_for(rows if part.shape[1] == 1 else 1):
                chosen = self.choices(state, part)
            action = np.stack([how(slot, rows, rng) for slot in chosen], axis=-1)
            return ChosenActions(action, _log_prob_of(chosen, action))

        if self._alike(state):
            return drawn(context[:, :1], context.shape[1])
        rows = max(1, ROWS_PER_PART // len(context))
        return by_rows(lambda part: drawn(part, part.shape[1]), rows, context)

    def log_prob(self, state: RewardConditionedState, context: Floats, action: Actions) -> Floats:
        self.check_rows(state, context)
        state.problem.check_action(action)
        if self._alike(state):
            return _log_prob_of(self.choices(state, context[:, :1]), action)
        rows = max(1, ROWS_PER_PART // len(context))
        return by_rows(
            lambda part, chosen: _log_prob_of(self.choices(state, part), chosen),
            rows,
            context,
            action,
        )

    def probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        space = state.problem.space
        space.check_listable("a list of probabilities")
        chosen = super().probabilities(state, context)[..., None, :]
        return joint_probabilities(chosen, space.choices)

    def choices(self, state: RewardConditionedState, context: Floats) -> list[Floats]:
        """Return the policy of each slot, ``[R, n, choices]``."""
        ends = first_choices(state.problem.space.choices)[1:]
        return np.split(super().probabilities(state, context), ends, axis=-1)

    def compute_probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        belief = self.belief(state, context)
        table = self.table(state, belief)
        tables = [table._replace(probabilities=slot) for slot in belief.prob_of_choices()]
        sizes = table.sample_sizes
        if sizes is not None:
            weights = belief.observation_weights_by_slot()
            tables = [
                one._replace(sample_sizes=sizes._replace(observation_weight=slot))
                for one, slot in zip(tables, weights, strict=True)
                if slot is not None
            ]
        return np.concatenate([self.strategy.probabilities(one) for one in tables], axis=-1)

    def _alike(self, state: RewardConditionedState) -> bool:
        return state.problem.context_width == 0 or not self.estimator.traits.uses_context


def _log_prob_of(slots: list[Floats], action: Actions) -> Floats:
    """Return the log-probability of actions, ``[R, n]``, under the policies of the slots."""
    result = [log_prob_of(slot, action[..., index]) for index, slot in enumerate(slots)]
    return np.add.reduce(result)


@serializable("per-slot-state")
class PerSlotState(NamedTuple):
    """The state of the policy of each slot."""

    problem: Problem
    slots: tuple[Any, ...]


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

    policy: Policy[Any] = field(default_factory=RewardConditioned)

    @property
    def traits(self) -> PolicyTraits:
        return self.policy.traits

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> PerSlotState:
        check_choices("the per-slot policy", problem.space)
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
        result = [
            self.policy.log_prob(inner, context, action[..., slot : slot + 1])
            for slot, inner in enumerate(state.slots)
        ]
        return np.sum(result, axis=0)

    def probabilities(self, state: PerSlotState, context: Floats) -> Floats:
        state.problem.check_context(context)
        state.problem.space.check_listable("per-slot")
        sizes = state.problem.space.choices
        slots = [
            np.broadcast_to(self.policy.probabilities(inner, context), (*context.shape[:2], size))
            for inner, size in zip(state.slots, sizes, strict=True)
        ]
        return joint_probabilities(np.concatenate(slots, axis=-1)[..., None, :], sizes)

    def restricted(self, state: PerSlotState, choices: Choices) -> PerSlotState | None:
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
        slot_reward = feedback.slot_reward[..., slot]
        known = np.isfinite(slot_reward)
        reward, weight = np.where(known, slot_reward, 0.0), np.where(known, weight, 0.0)
    return Feedback(
        feedback.context, feedback.action[..., slot : slot + 1], reward, feedback.log_prob, weight
    )


MOST_EFFECTS = 6000
"""The most effects that a regression may have, because it inverts a matrix of this size."""
PROBABILITIES_PER_PART = 2**20
"""About this many probabilities of choices are held in memory at a time: 8 MB."""


@serializable("slots-state")
class SlotsState(NamedTuple):
    """The regression of each replica."""

    problem: Problem
    beliefs: tuple[SlotBelief, ...]

    def restricted(self, choices: Choices) -> Self:
        beliefs = tuple(belief.restricted(choices) for belief in self.beliefs)
        return self._replace(problem=self.problem.restricted(choices), beliefs=beliefs)


@dataclass(frozen=True)
class PosteriorSlots(Policy[SlotsState]):
    """Regress the reward on the effects of choices, and improve every slot on posterior draws.

    The expected reward is a sum: a constant, the context, each slot's choice, each choice with the
    context and, with ``pairs``, each pair of choices, if there are at most ``effects`` of them.
    Prior variances and noise are fitted by marginal likelihood. ``draws`` posterior draws are kept,
    with the share ``width`` of the posterior's standard deviation. Each draw gives a policy that is
    a product over slots: for one slot after the other, and ``sweeps`` times, SubMax is applied
    ``depth`` times from the uniform policy to the expected reward of each choice, given how the
    other slots choose. A decision uses one of the draws at random, so the probability of a
    joint action is the mean of these products. It is exact, and no joint action is listed.

    Not in the paper; see docs/research.
    """

    effects: Annotated[int, Allowed(whole_number, at_least=1, at_most=MOST_EFFECTS)] = 1500
    rows: Annotated[int, Allowed(whole_number, at_least=10, at_most=100_000)] = 2000
    draws: Annotated[int, Allowed(whole_number, at_least=1, at_most=4096)] = 16
    width: NonNegative = 0.05
    pairs: bool = True
    depth: Annotated[int, Allowed(whole_number, at_least=1, at_most=100)] = 2
    sweeps: Annotated[int, Allowed(whole_number, at_least=1, at_most=100)] = 3

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> SlotsState:
        check_choices("the posterior-slots policy", problem.space)
        plain = 1 + problem.context_width
        needed = plain * (1 + sum(problem.space.choices))
        if needed > MOST_EFFECTS:
            raise InputError(
                f"the posterior-slots policy has at most {MOST_EFFECTS} effects of choices and "
                f"contexts, but this problem has {needed}: use rcp-cvae-submax-by-slot"
            )
        belief = SlotBelief.unlearned(problem.context_width, problem.space.slots)
        return SlotsState(problem, (belief,) * replicas)

    def act(self, state: SlotsState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        state.problem.check_context(context)
        # Choose a posterior draw for each decision, then the choices of its slots.
        member = rng.integers(self.draws, size=context.shape[:2])

        def drawn(part: Floats, chosen: Integers) -> ChosenActions:
            policies = self._policies(state, part)
            slots = [
                np.take_along_axis(policy, chosen[..., None, None], axis=2)[:, :, 0]
                for policy in policies
            ]
            action = np.stack([draw(slot, slot.shape[1], rng) for slot in slots], axis=-1)
            return ChosenActions(action, _log_prob(policies, action))

        return by_rows(drawn, self._rows_at_once(state.problem), context, member)

    def log_prob(self, state: SlotsState, context: Floats, action: Actions) -> Floats:
        state.problem.check_context(context)
        state.problem.check_action(action)
        return by_rows(
            lambda part, chosen: _log_prob(self._policies(state, part), chosen),
            self._rows_at_once(state.problem),
            context,
            action,
        )

    def update(self, state: SlotsState, feedback: Feedback, rng: np.random.Generator) -> SlotsState:
        feedback.check(state.problem)
        sizes = state.problem.space.choices
        settings = SlotSettings(sizes, self.effects, self.rows, self.draws, self.width, self.pairs)
        # Each replica has a stream of its own, so none depends on the rows of another.
        beliefs, streams = [], rng.spawn(len(state.beliefs))
        for replica, (belief, stream) in enumerate(zip(state.beliefs, streams, strict=True)):
            rows = RegressionRows.of(feedback, replica, feedback.action)
            beliefs.append(belief.learned(rows, settings, stream) if len(rows.reward) else belief)
        return state._replace(beliefs=tuple(beliefs))

    def _rows_at_once(self, problem: Problem) -> int:
        return max(1, PROBABILITIES_PER_PART // (self.draws * sum(problem.space.choices)))

    def _policies(self, state: SlotsState, context: Floats) -> list[Floats]:
        """Return the policy of each slot by each draw, ``[R, n, P, choices]``."""
        sizes = state.problem.space.choices
        shape = (*context.shape[:2], self.draws)
        if state.problem.context_width == 0:
            # Without context all decisions of a replica have the same policies.
            context = context[:, :1]
        result = [np.full((*context.shape[:2], self.draws, size), 1 / size) for size in sizes]
        for replica, belief in enumerate(state.beliefs):
            if belief.slot_map is not None:
                policies = self._improved(belief, context[replica])
                for slot, policy in enumerate(policies):
                    result[slot][replica] = policy
        return [
            np.broadcast_to(one, (*shape, size)) for one, size in zip(result, sizes, strict=True)
        ]

    def _improved(self, belief: SlotBelief, context: Floats) -> list[Floats]:
        """Return the policies of one replica, ``[n, P, choices]`` for each slot."""
        slot_map, pool = known(belief.slot_map), known(belief.pool)
        effects, pairs = slot_map.choice_effects(pool, context), slot_map.pair_effects(pool)
        policies = [np.full(effect.shape, 1 / effect.shape[-1]) for effect in effects]
        for _ in range(self.sweeps if pairs else 1):
            for slot, effect in enumerate(effects):
                value = effect + _pair_rewards(slot, policies, pairs)
                policies[slot] = submax_of(value, self.depth)
        return policies


def _pair_rewards(
    slot: int, policies: list[Floats], pairs: dict[tuple[int, int], Floats]
) -> Floats:
    """Return the expected pair effects of a slot's choices: ``[n, P, choices]``, or 0."""
    total = np.zeros(1)
    for (one, other), effect in pairs.items():
        if one == slot:
            total = total + np.einsum("npc,pbc->npb", policies[other], effect)
        elif other == slot:
            total = total + np.einsum("npb,pbc->npc", policies[one], effect)
    return total


def _log_prob(policies: list[Floats], action: Integers) -> Floats:
    """Return the logarithm of the mean over draws of the product over slots: ``[R, n]``."""
    product = np.ones(policies[0].shape[:3])
    for slot, policy in enumerate(policies):
        chosen = action[..., slot][..., None, None]
        wanted = np.broadcast_to(chosen, (*policy.shape[:3], 1))
        product = product * np.take_along_axis(policy, wanted, axis=3)[..., 0]
    with np.errstate(divide="ignore"):
        result: Floats = np.log(product.mean(axis=2))
    return result
