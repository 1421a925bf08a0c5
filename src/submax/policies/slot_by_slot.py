"""The reward-conditioned policy that chooses slot by slot."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.categorical import draw, draw_lots, log_prob_of
from submax.core.decision import Decision
from submax.core.errors import InvalidValue
from submax.core.fallback import standing_for
from submax.core.space import Space
from submax.estimators.counting import Counting
from submax.estimators.cvae import CVAE
from submax.estimators.softmax import Softmax
from submax.networks.slot_choices import first_choices, joint_probabilities
from submax.policies.conditioning import Conditioning
from submax.policies.listed import joined, split
from submax.policies.reward_conditioned_state import RewardConditionedState
from submax.strategies.filling import Filling
from submax.strategies.iterated import Iterated

AT_ONCE = 2**21
"""About so many probabilities are held at a time."""
DEMAND = 0.3
"""Of the evidence that counts would need: networks draw values together; see docs/research."""


@dataclass(frozen=True)
class SlotBySlot(Conditioning):
    """Choose in every slot on its own: π(a | c) = Π_s π_s(a_s | c).

    The ``estimator`` says how likely each choice of a slot is at each reward, whatever the other
    slots choose, and the ``strategy`` makes it the slot's policy, as if the choices were actions.
    So every slot improves by itself, where one step for the joint action would be shared by all of
    them; probabilities are exact, and their cost goes with the sum of the choices, not with their
    product. What only a combination of choices earns is not seen. With one slot it is
    `RewardConditioned`.

    Not in the paper; see docs/research.
    """

    def check_space(self, space: Space) -> None:
        """It chooses, and nothing else."""
        if space.reals:
            raise InvalidValue(
                f"the slot-by-slot policy is made for choices, and {space} is real-valued: take "
                "reward-conditioned"
            )

    def act(
        self, state: RewardConditionedState, context: Floats, rng: np.random.Generator
    ) -> Decision:
        """Draw every slot, with the probability of all together."""
        self.check_rows(state, context)
        if state.problem.context_width == 0 or self.gives_lots:
            return self._drawn(state, context[:, :1], context.shape[1], rng)
        parts = [self._drawn(state, part, part.shape[1], rng) for part in _parts(state, context)]
        return Decision(*map(joined, zip(*parts, strict=True)))

    def log_prob(self, state: RewardConditionedState, context: Floats, action: Actions) -> Floats:
        """The sum over the slots."""
        state.problem.check_context(context)
        state.problem.check_action(action)
        if state.problem.context_width == 0 or self.ignores_context:
            return _chances(self.choices(state, context[:, :1]), action)
        parts = _parts(state, context)
        ends = np.cumsum([part.shape[1] for part in parts])[:-1]
        pairs = zip(parts, np.split(action, ends, axis=1), strict=True)
        found: Floats = joined([_chances(self.choices(state, part), rows) for part, rows in pairs])
        return found

    def probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        """The product over the slots, for every joint action."""
        space = state.problem.space
        space.check_listable("a list of probabilities")
        chosen = np.concatenate(self.choices(state, context), axis=-1)
        return joint_probabilities(chosen[..., None, :], space.choices)

    def choices(self, state: RewardConditionedState, context: Floats) -> list[Floats]:
        """The policy of each slot, ``[R, n, choices]``."""
        sizes = state.problem.space.choices
        known = self.estimator.prob_of_choices(state.params, context, state.problem.space)
        table = self.table(state, context)
        return [
            self.strategy.probabilities(table._replace(probabilities=slot))
            for slot in np.split(known, first_choices(sizes)[1:], axis=-1)
        ]

    def _drawn(
        self, state: RewardConditionedState, context: Floats, rows: int, rng: np.random.Generator
    ) -> Decision:
        with standing_for(rows if context.shape[1] == 1 else 1):
            chosen = self.choices(state, context)
        how = draw_lots if self.gives_lots else draw
        action = np.stack([how(slot, rows, rng) for slot in chosen], axis=-1)
        return Decision(action, _chances(chosen, action))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Counts, and small networks."""
        yield cls()
        yield cls(Counting(None), Filling())
        yield cls(Counting(), Iterated(2))
        yield cls(next(Softmax.examples()), Filling(DEMAND))
        yield cls(next(CVAE.examples()))

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """What carries `rcp-adaptive` over to contexts and slots, and SubMax by slots."""
        return {
            "rcp-cvae-submax-by-slot": cls(CVAE()),
            "rcp-softmax-adaptive": cls(Softmax(), Filling(DEMAND)),
            "rcp-cvae-adaptive": cls(CVAE(), Filling(DEMAND)),
        }


def _parts(state: RewardConditionedState, context: Floats) -> list[Floats]:
    """The rows in parts that are not too large."""
    size = len(context) * state.problem.scale.levels * sum(state.problem.space.choices)
    return split(context, max(1, AT_ONCE // size))


def _chances(slots: list[Floats], action: Actions) -> Floats:
    """The log-probability of actions, ``[R, n]``, under the policies of the slots."""
    found = [log_prob_of(slot, action[..., place]) for place, slot in enumerate(slots)]
    total: Floats = np.add.reduce(found)
    return total
