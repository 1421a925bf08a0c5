"""Arms whose success probabilities depend on a context, in a way that drifts."""

from dataclasses import dataclass

import numpy as np

from submax.core.checks import positive, whole_number
from submax.core.spaces.arms import Arms
from submax.environments.changing.drift import drifted
from submax.environments.networks.network_environment import NetworkEnvironment
from submax.environments.networks.truth_network import TruthNetwork, check_truth


@dataclass(frozen=True)
class DriftingContextual(NetworkEnvironment):
    """`Contextual` with drifting network weights: after n decisions W is ρⁿ W + √(1 − ρ²ⁿ) W′.

    ρ = exp(−1 / ``memory``), and W′ is an independent draw of all weights. The mean and the
    variance of the weights stay the same, but not the shape of their distribution: the weights
    start uniform and become sums of many draws, which are closer to normal. ``memory`` is the
    number of decisions after which the correlation with the past is 1/e; the other parameters are
    those of `Contextual`.
    """

    arms: int = 4
    dimension: int = 20
    shift: float = 0.0
    hidden: int = 32
    memory: float = 5000.0

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        check_truth(self.dimension, self.shift, self.hidden)
        positive("memory", self.memory)

    @property
    def space(self) -> Arms:
        return Arms(self.arms)

    def advance(self, world: TruthNetwork, count: int, rng: np.random.Generator) -> TruthNetwork:
        fresh = self.reset(len(world.output_weight), rng)
        parts = zip(world, fresh, strict=True)
        return TruthNetwork(*(drifted(old, new, count, self.memory) for old, new in parts))
