"""The outputs of a network in given contexts, if every part of an action is a choice."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.models.networks.slot_choices import action_probabilities, draw_actions


@dataclass(frozen=True)
class DecodedChoices(ConditionalDistribution):
    """The probabilities of all C choices in slots of these ``sizes``, ``[R, L, n, Z, C]``."""

    probabilities: Floats
    sizes: tuple[int, ...]

    def prob(self, action: Integers) -> Floats:
        return action_probabilities(self.probabilities, action, self.sizes)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Integers:
        return draw_actions(self.probabilities[:, level], count, self.sizes, rng)

    def rows(self, row: Integers) -> "DecodedChoices":
        replica = np.arange(len(row))[:, None]
        chosen = self.probabilities[replica, :, row]
        return DecodedChoices(chosen.swapaxes(1, 2), self.sizes)
