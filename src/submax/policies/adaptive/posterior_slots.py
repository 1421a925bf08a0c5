"""SubMax on posterior draws of the effects of choices, slot by slot."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import non_negative, whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.numerics.categorical import draw
from submax.core.running.stored import stored
from submax.core.spaces.space import LISTING_LIMIT, Choices
from submax.models.regression.slot_belief import JointRows, SlotBelief, SlotSettings
from submax.policies.listed import joined, split
from submax.strategies.iterated import submax_of

MOST_EFFECTS = 6000
"""The most effects that a regression may have, because it inverts a matrix of this size."""
PROBABILITIES_PER_PART = 2**20
"""About this many probabilities of choices are held in memory at a time: 8 MB."""


@stored("slots-state")
class SlotsState(NamedTuple):
    """The regression of each replica."""

    problem: Problem
    beliefs: tuple[SlotBelief, ...]

    def restricted(self, choices: Choices) -> Self:
        """Return the state with these choices alone."""
        return self._replace(
            problem=self.problem.restricted(choices),
            beliefs=tuple(belief.restricted(choices) for belief in self.beliefs),
        )


@dataclass(frozen=True)
class PosteriorSlots(Policy[SlotsState]):
    """Regress the reward on the effects of choices, and improve every slot on posterior draws.

    The expected reward is a sum: a constant, the context, each slot's choice, each choice with the
    context and, with ``pairs``, each pair of choices, if there are at most ``effects`` of them.
    Prior variances and noise are fitted by marginal likelihood. ``draws`` posterior draws are kept,
    with the share ``width`` of the posterior's standard deviation. Each draw gives a policy that is
    a product over slots: for one slot after the other, and ``sweeps`` times, SubMax is applied
    ``depth`` times from the uniform policy to the expected reward of each choice, given how the
    other slots choose. A decision uses one of the draws at random, so that the probability of a
    joint action is the mean of these products. It is exact, and no joint action is listed.

    Not in the paper; see docs/research.
    """

    effects: int = 1500
    rows: int = 2000
    draws: int = 16
    width: float = 0.05
    pairs: bool = True
    depth: int = 2
    sweeps: int = 3

    def __post_init__(self) -> None:
        whole_number("effects", self.effects, at_least=1, at_most=MOST_EFFECTS)
        whole_number("rows", self.rows, at_least=10, at_most=100_000)
        whole_number("draws", self.draws, at_least=1, at_most=4096)
        whole_number("depth", self.depth, at_least=1, at_most=100)
        whole_number("sweeps", self.sweeps, at_least=1, at_most=100)
        non_negative("width", self.width)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> SlotsState:
        if problem.space.reals:
            raise InputError(
                f"the posterior-slots policy is made for choices, and {problem.space} has "
                "real-valued parts: take rcp-cvae-submax"
            )
        plain = 1 + problem.context_width
        needed = plain * (1 + sum(problem.space.choices))
        if needed > MOST_EFFECTS:
            raise InputError(
                f"the posterior-slots policy has at most {MOST_EFFECTS} effects of choices and "
                f"contexts, and this problem has {needed}: take rcp-cvae-submax-by-slot"
            )
        belief = SlotBelief.unlearned(problem.context_width, problem.space.slots)
        return SlotsState(problem, (belief,) * replicas)

    def act(self, state: SlotsState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        state.problem.check_context(context)
        replicas, rows, _ = context.shape
        # Choose a posterior draw for each decision, then the choices of its slots.
        member = rng.integers(self.draws, size=(replicas, rows))
        action = np.empty((replicas, rows, state.problem.space.slots), dtype=np.int64)
        log_prob = np.empty((replicas, rows))
        step = self._rows_at_once(state.problem)
        for begin in range(0, rows, step):
            part = slice(begin, begin + step)
            policies = self._policies(state, context[:, part])
            chosen = member[:, part, None, None]
            for slot, policy in enumerate(policies):
                own = np.take_along_axis(policy, chosen, axis=2)
                action[:, part, slot] = draw(own[:, :, 0], own.shape[1], rng)
            log_prob[:, part] = _log_prob(policies, action[:, part])
        return ChosenActions(action, log_prob)

    def log_prob(self, state: SlotsState, context: Floats, action: Actions) -> Floats:
        state.problem.check_context(context)
        state.problem.check_action(action)
        step = self._rows_at_once(state.problem)
        pairs = zip(split(context, step), split(action, step), strict=True)
        found: Floats = joined(
            [_log_prob(self._policies(state, part), chosen) for part, chosen in pairs]
        )
        return found

    def expected_rewards(self, state: SlotsState, context: Floats) -> Floats | None:
        """Return the posterior mean of every joint action; None if these are too many to list."""
        space = state.problem.space
        if space.size > LISTING_LIMIT:
            return None
        listing = space.listing()
        found = np.full((*context.shape[:2], space.size), np.nan)
        for replica, belief in enumerate(state.beliefs):
            if belief.slot_map is None or belief.coefficients is None:
                continue
            for row, values in enumerate(context[replica]):
                features = belief.slot_map.rows(np.tile(values, (space.size, 1)), listing)
                found[replica, row] = belief.centre + features @ belief.coefficients
        return found

    def update(self, state: SlotsState, feedback: Feedback, rng: np.random.Generator) -> SlotsState:
        feedback.check(state.problem)
        settings = SlotSettings(
            state.problem.space.choices,
            self.effects,
            self.rows,
            self.draws,
            self.width,
            self.pairs,
        )
        beliefs = []
        streams = rng.spawn(len(state.beliefs))
        for replica, (belief, stream) in enumerate(zip(state.beliefs, streams, strict=True)):
            there = feedback.weight[replica] > 0
            rows = JointRows(
                feedback.context[replica, there].astype(np.float64),
                feedback.action[replica, there],
                feedback.reward[replica, there].astype(np.float64),
                feedback.weight[replica, there].astype(np.float64),
            )
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
        found = [np.full((*context.shape[:2], self.draws, size), 1 / size) for size in sizes]
        for replica, belief in enumerate(state.beliefs):
            if belief.slot_map is not None:
                policies = self._improved(belief, context[replica])
                for slot, policy in enumerate(policies):
                    found[slot][replica] = policy
        return [
            np.broadcast_to(one, (*shape, size)) for one, size in zip(found, sizes, strict=True)
        ]

    def _improved(self, belief: SlotBelief, context: Floats) -> list[Floats]:
        """Return the policies of one replica, ``[n, P, choices]`` for each slot."""
        assert belief.slot_map is not None, "nothing was learned"
        assert belief.pool is not None, "nothing was learned"
        own = belief.slot_map.choice_effects(belief.pool, context)
        pairs = belief.slot_map.pair_effects(belief.pool)
        policies = [np.full(effect.shape, 1 / effect.shape[-1]) for effect in own]
        for _ in range(self.sweeps if pairs else 1):
            for slot, effect in enumerate(own):
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
        found: Floats = np.log(product.mean(axis=2))
    return found
