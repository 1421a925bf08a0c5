"""Hill climbing over joint choices, for many weight vectors together."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.policies.linear.slot_effects import SlotEffects

Weights: TypeAlias = NDArray[np.float32]


class Hills(NamedTuple):
    """The functions that N climbs maximize: f(a) = Σ_s ``choices``[a_s] + Σ_{s<t} pairs[a_s, a_t].

    ``choices [N, Σ sizes]`` has the weights of single choices for each climb. The pairwise weights
    of a climb are in the row ``member [N]`` of ``weights``, whose columns are all effects except
    the constant ones.
    """

    effects: SlotEffects
    choices: Weights
    weights: Weights
    member: Integers

    def choice_scores(self, slot: int, climb: Integers, action: Integers) -> Weights:
        """f, up to a constant, for every choice of a slot with the others as in ``action``."""
        part = self.effects.choices[slot]
        constant = self.effects.constant
        scores = self.choices[climb, part.start - constant : part.stop - constant]
        member = self.member[climb]
        for other in range(len(self.effects.sizes)):
            if other < slot:
                scores += self._pair(other, slot)[member, action[:, other]]
            elif other > slot:
                scores += self._pair(slot, other)[member, :, action[:, other]]
        return scores

    def heights(self, climb: Integers, action: Integers) -> Weights:
        """The height f of each climb's action: ``[n]`` and ``[n, S] -> [n]``."""
        member = self.member[climb]
        height = np.zeros(len(climb), dtype=np.float32)
        for slot, part in enumerate(self.effects.choices):
            height += self.choices[climb, part.start - self.effects.constant + action[:, slot]]
        for first, second in self.effects.pairs:
            height += self._pair(first, second)[member, action[:, first], action[:, second]]
        return height

    def _pair(self, first: int, second: int) -> Weights:
        """The weights of all pairs of choices in two slots, as a table ``[M, size, size]``."""
        part, sizes = self.effects.pairs[first, second], self.effects.sizes
        constant = self.effects.constant
        table = self.weights[:, part.start - constant : part.stop - constant]
        return table.reshape(len(table), sizes[first], sizes[second])


def climbed(hills: Hills, starts: Integers, sweeps: int) -> Integers:
    """The best action that a climb from any start finds: ``[N, restarts, S] -> [N, S]``.

    A sweep sets one slot after the other to its best choice, given all others. The climb ends
    after a sweep that changes nothing, or after ``sweeps`` sweeps.
    """
    number, restarts, slots = starts.shape
    action = starts.reshape(-1, slots).copy()
    climb = np.repeat(np.arange(number, dtype=np.int64), restarts)
    moving = np.arange(len(action), dtype=np.int64)
    for _ in range(sweeps):
        before = action[moving]
        after = before.copy()
        for slot in range(slots):
            after[:, slot] = hills.choice_scores(slot, climb[moving], after).argmax(axis=-1)
        action[moving] = after
        moving = moving[(after != before).any(axis=-1)]
        if not len(moving):
            break
    best = hills.heights(climb, action).reshape(number, restarts).argmax(axis=-1)
    chosen: Integers = action.reshape(starts.shape)[np.arange(number), best]
    return chosen
