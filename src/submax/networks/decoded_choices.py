"""What a network says in given contexts, where every action is a row of choices."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.networks.slot_choices import action_probabilities, draw_actions


@dataclass(frozen=True)
class DecodedChoices(ConditionalDistribution):
    """The probability of every choice, ``[R, L, n, Z, C]``, with slots of these sizes."""

    probabilities: Floats
    sizes: tuple[int, ...]

    def prob(self, action: Integers) -> Floats:
        """Products of choices, averaged over the latent draws."""
        return action_probabilities(self.probabilities, action, self.sizes)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Integers:
        """Draw a part of the mixture, then a choice in each slot."""
        return draw_actions(self.probabilities[:, level], count, self.sizes, rng)

    def rows(self, row: Integers) -> "DecodedChoices":
        """Nothing is evaluated again."""
        replica = np.arange(len(row))[:, None]
        chosen = self.probabilities[replica, :, row]
        return DecodedChoices(chosen.swapaxes(1, 2), self.sizes)
