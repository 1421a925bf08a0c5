"""The outputs of a network in given contexts, if some part of an action is real-valued."""

import math
from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.spaces.real_space import RealSpace
from submax.models.networks.mixture_density import MixtureDensity


@dataclass(frozen=True)
class DecodedDensity(ConditionalDistribution):
    """A mixture density with axes ``[R, L, n, Z, ...]`` over a space with real-valued parts."""

    mixture: MixtureDensity
    space: RealSpace

    def prob(self, action: Floats) -> Floats:
        """Return the density in the units of the space: that on the unit cube over the volume."""
        found = self.mixture.density(self.space.scaled(action), self.space.choices)
        found /= math.exp(self.space.log_volume)
        return found

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Floats:
        drawn = self.mixture.at_level(level).sample(count, self.space.choices, rng)
        return self.space.unscaled(drawn)

    def rows(self, row: Integers) -> "DecodedDensity":
        return DecodedDensity(self.mixture.rows(row), self.space)
