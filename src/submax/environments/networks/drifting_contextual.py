"""Arms whose chances depend on a context, in a way that changes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.checks import positive, whole_number
from submax.core.spaces.arms import Arms
from submax.environments.arms.drift import drifted
from submax.environments.networks.network_environment import NetworkEnvironment
from submax.environments.networks.truth_network import TruthNetwork, check_truth


@dataclass(frozen=True)
class DriftingContextual(NetworkEnvironment):
    """`Contextual`, whose weights move: after n decisions W is ρⁿ W + √(1 − ρ²ⁿ) W′.

    ρ = exp(−1 / ``memory``), and W′ is a fresh draw of all weights. Mean and variance of the
    weights are the same at all times; their shape is not: they start uniform and, being sums of
    many draws, come nearer to normal the more often they are moved.
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
        """Plain arms."""
        return Arms(self.arms)

    def advance(self, world: TruthNetwork, count: int, rng: np.random.Generator) -> TruthNetwork:
        """Move every weight on."""
        fresh = self.reset(len(world.output_weight), rng)
        parts = zip(world, fresh, strict=True)
        return TruthNetwork(*(drifted(old, new, count, self.memory) for old, new in parts))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Slow and dense, fast and sparse."""
        yield cls()
        yield cls(arms=3, dimension=2, shift=-2.0, hidden=8, memory=50.0)
