"""Several choices made jointly, whose chance depends on a context."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from submax.core.arrays import Floats, Integers
from submax.core.environment import Environment, Outcome
from submax.core.errors import InvalidValue
from submax.core.problem import Problem
from submax.core.slots import Slots
from submax.environments.truth_network import (
    TruthNetwork,
    check_truth,
    draw_directions,
    draw_network,
    highest_logits,
    logits,
)


@dataclass(frozen=True)
class Combinatorial(Environment[TruthNetwork]):
    """One choice in each slot; they pay jointly, P(1 | a, c) = σ(f(onehot(a₁) ⊕ … ⊕ c) + s).

    ``sizes`` says among how many choices each slot chooses, s is ``shift``; the network f and the
    contexts are those of `Contextual`. ``best_reward`` is exact and needs a space of at most
    `LISTING_LIMIT` joint actions; everything else works for any number of them.

    Reference: Xu et al. (2024), section 4.3.

    *Departs from the paper:* it names 2, 4, 6, 16 and 32 choices and 32768 joint actions, which
    takes 8 in place of 6. The shift is not stated; −3 gives its average reward, E[R̄] = 0.0483.
    """

    sizes: tuple[int, ...] = (2, 4, 8, 16, 32)
    dimension: int = 20
    shift: float = -3.0
    hidden: int = 32

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, tuple):
            raise InvalidValue(f"sizes must be a tuple of whole numbers, not {self.sizes!r}")
        Slots(self.sizes)
        check_truth(self.dimension, self.shift, self.hidden)

    @property
    def problem(self) -> Problem:
        """Slots, a context, rewards 0 and 1."""
        return Problem(Slots(self.sizes), self.dimension)

    def reset(self, replicas: int, rng: np.random.Generator) -> TruthNetwork:
        """Draw a network for each replica."""
        return draw_network(replicas, sum(self.sizes), self.dimension, self.hidden, rng)

    def contexts(self, world: TruthNetwork, count: int, rng: np.random.Generator) -> Floats:
        """Points on the unit sphere."""
        return draw_directions(len(world.output_weight), count, self.dimension, rng)

    def mean_reward(self, world: TruthNetwork, context: Floats, action: Integers) -> Floats:
        """The chance that the network gives."""
        chance: Floats = special.expit(logits(world, self.sizes, context, action) + self.shift)
        return chance

    def reward(
        self, world: TruthNetwork, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Floats:
        """Toss the coin of the joint action."""
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: TruthNetwork, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Outcome:
        """Run the network once for both."""
        chance = self.mean_reward(world, context, action)
        return Outcome((rng.random(chance.shape) < chance).astype(np.float64), chance)

    def best_reward(self, world: TruthNetwork, context: Floats) -> Floats:
        """The highest chance of all joint actions in each context."""
        chance: Floats = special.expit(highest_logits(world, self.sizes, context) + self.shift)
        return chance

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """The paper's, one that is listed and one slot alone."""
        yield cls()
        yield cls((3, 2, 4), dimension=3, shift=0.0, hidden=8)
        yield cls((5,), dimension=2)
