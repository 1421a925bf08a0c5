"""The reward-conditioned policy that chooses slot by slot."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.strategy import Strategy
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.errors import InputError
from submax.core.numerics.categorical import draw, draw_lots, log_prob_of
from submax.core.running.fallback import standing_for
from submax.core.spaces.space import Space
from submax.estimators.counting import Counting
from submax.estimators.cvae import CVAE
from submax.estimators.softmax import Softmax
from submax.networks.slot_choices import first_choices, joint_probabilities
from submax.policies.listed import joined, split
from submax.policies.reward_conditioned.conditioning import Conditioning, check_levels
from submax.policies.reward_conditioned.reward_conditioned_state import RewardConditionedState
from submax.strategies.filling import Filling
from submax.strategies.submax import SubMax

AT_ONCE = 2560
"""So many rows of all replicas are decided at a time: what they need stays small."""
NETWORK_DEMAND = 0.3
"""Of the evidence that counts would need: networks draw values together; see docs/research."""


@dataclass(frozen=True)
class SlotBySlot(Conditioning):
    """Choose in every slot on its own: π(a | c) = Π_s π_s(a_s | c).

    The ``estimator`` says how likely each choice of a slot is at each reward, whatever the other
    slots choose, and the ``strategy`` makes it the slot's policy, as if the choices were actions.
    So every slot improves by itself, where one step for the joint action would be shared by all of
    them; probabilities are exact, and with a network their cost goes with the sum of the choices,
    not with their product. It values a choice by what it earned beside what the others chose: what
    a combination earns it finds by chance, or not at all. With one slot it is `RewardConditioned`.
    ``levels`` is how many rewards are conditioned on, where it is not what the scale says.

    Not in the paper; see docs/theory.md and docs/research.
    """

    estimator: Estimator[Any] = field(default_factory=Counting)
    strategy: Strategy = field(default_factory=SubMax)
    levels: int | None = None

    def __post_init__(self) -> None:
        check_levels(self.levels)

    def check_space(self, space: Space) -> None:
        """It chooses, and nothing else, and what a strategy reads must be of the slot."""
        if space.reals:
            raise InputError(
                f"the slot-by-slot policy is made for choices, and {space} is real-valued: take "
                "reward-conditioned with the CVAE, such as rcp-cvae-submax"
            )
        if self.strategy.needs_values and space.slots > 1:
            raise InputError(
                f"the {type(self.strategy).__name__} strategy reads the value of joint policies, "
                "which no slot has: take reward-conditioned, or another strategy such as submax"
            )

    def act(
        self, state: RewardConditionedState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        """Draw every slot, with the probability of all together."""
        self.check_rows(state, context)
        if self._alike(state):
            return self._drawn(state, context[:, :1], context.shape[1], rng)
        parts = split(context, max(1, AT_ONCE // len(context)))
        drawn = [self._drawn(state, part, part.shape[1], rng) for part in parts]
        return ChosenActions(*map(joined, zip(*drawn, strict=True)))

    def log_prob(self, state: RewardConditionedState, context: Floats, action: Actions) -> Floats:
        """The sum over the slots."""
        self.check_rows(state, context)
        state.problem.check_action(action)
        if self._alike(state):
            return _log_prob_of(self.choices(state, context[:, :1]), action)
        rows = max(1, AT_ONCE // len(context))
        pairs = zip(split(context, rows), split(action, rows), strict=True)
        found: Floats = joined(
            [_log_prob_of(self.choices(state, part), chosen) for part, chosen in pairs]
        )
        return found

    def probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        """The product over the slots, for every joint action."""
        space = state.problem.space
        space.check_listable("a list of probabilities")
        # Without context all rows share one policy.
        rows = context[:, :1] if state.problem.context_width == 0 else context
        return joint_probabilities(self.chances(state, rows)[..., None, :], space.choices)

    def choices(self, state: RewardConditionedState, context: Floats) -> list[Floats]:
        """The policy of each slot, ``[R, n, choices]``."""
        sizes = state.problem.space.choices
        return np.split(self.chances(state, context), first_choices(sizes)[1:], axis=-1)

    def find_chances(self, state: RewardConditionedState, context: Floats) -> Floats:
        """Those of all choices, one slot behind the other."""
        space = state.problem.space
        table = self.table(state, context)
        known = self.estimator.prob_of_choices(state.params, context, space)
        tables = [table._replace(probabilities=slot) for slot in known]
        if table.experience is not None:
            evidence = self.estimator.evidence_of_choices(state.params, context, space)
            tables = [
                one._replace(experience=table.experience._replace(evidence=slot))
                for one, slot in zip(tables, evidence, strict=True)
            ]
        return np.concatenate([self.strategy.probabilities(one) for one in tables], axis=-1)

    def _alike(self, state: RewardConditionedState) -> bool:
        """Whether all rows of a replica have the same probabilities."""
        return state.problem.context_width == 0 or not self.estimator.facts.uses_context

    def _drawn(
        self, state: RewardConditionedState, context: Floats, rows: int, rng: np.random.Generator
    ) -> ChosenActions:
        with standing_for(rows if context.shape[1] == 1 else 1):
            chosen = self.choices(state, context)
        how = draw_lots if self.gives_lots else draw
        action = np.stack([how(slot, rows, rng) for slot in chosen], axis=-1)
        return ChosenActions(action, _log_prob_of(chosen, action))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Counts, and small networks."""
        yield cls()
        yield cls(Counting("fitted"), Filling())
        yield cls(next(Softmax.examples()), Filling(NETWORK_DEMAND))
        yield cls(next(CVAE.examples()))

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """What carries `rcp-adaptive` over to contexts and slots, and SubMax by slots."""
        return {
            "rcp-cvae-submax-by-slot": cls(CVAE()),
            "rcp-softmax-adaptive": cls(Softmax(), Filling(NETWORK_DEMAND)),
            "rcp-cvae-adaptive": cls(CVAE(), Filling(NETWORK_DEMAND)),
        }


def _log_prob_of(slots: list[Floats], action: Actions) -> Floats:
    """The log-probability of actions, ``[R, n]``, under the policies of the slots."""
    found = [log_prob_of(slot, action[..., place]) for place, slot in enumerate(slots)]
    total: Floats = np.add.reduce(found)
    return total
