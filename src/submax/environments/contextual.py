"""Arms whose chances depend on a context."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from submax.core.arms import Arms
from submax.core.arrays import Floats, Integers
from submax.core.checks import whole_number
from submax.core.environment import Environment, Outcome
from submax.core.problem import Problem
from submax.environments.truth_network import (
    TruthNetwork,
    check_truth,
    draw_directions,
    draw_network,
    highest_logits,
    logits,
)


@dataclass(frozen=True)
class Contextual(Environment[TruthNetwork]):
    """K arms that pay 0 or 1 with P(1 | a, c) = σ(f(onehot(a) ⊕ c) + s).

    K is ``arms``, s is ``shift``; f is a random network with one layer of ``hidden`` ReLU units,
    drawn anew for every replica. Contexts c are uniform on the unit sphere in R^``dimension``.

    Reference: Xu et al. (2024), section 4.2.

    *Departs from the paper:* one context is shared by all arms of a decision, where Zhou et al.
    (2020), whom the paper follows, draw one for each arm. The width of the truth, its Glorot
    weights and zero biases are not stated; they were chosen so that the average reward E[R̄] agrees:
    0.501, 0.123 and 0.0185 for a shift of 0, −2 and −4.
    """

    arms: int = 4
    dimension: int = 20
    shift: float = 0.0
    hidden: int = 32

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        check_truth(self.dimension, self.shift, self.hidden)

    @property
    def problem(self) -> Problem:
        """Plain arms, a context, rewards 0 and 1."""
        return Problem(Arms(self.arms), self.dimension)

    def reset(self, replicas: int, rng: np.random.Generator) -> TruthNetwork:
        """Draw a network for each replica."""
        return draw_network(replicas, self.arms, self.dimension, self.hidden, rng)

    def contexts(self, world: TruthNetwork, count: int, rng: np.random.Generator) -> Floats:
        """Points on the unit sphere."""
        return draw_directions(len(world.output_weight), count, self.dimension, rng)

    def mean_reward(self, world: TruthNetwork, context: Floats, action: Integers) -> Floats:
        """The chance that the network gives."""
        chance: Floats = special.expit(logits(world, (self.arms,), context, action) + self.shift)
        return chance

    def reward(
        self, world: TruthNetwork, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Floats:
        """Toss the arm's coin."""
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: TruthNetwork, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Outcome:
        """Run the network once for both."""
        chance = self.mean_reward(world, context, action)
        return Outcome((rng.random(chance.shape) < chance).astype(np.float64), chance)

    def best_reward(self, world: TruthNetwork, context: Floats) -> Floats:
        """The highest chance in each context."""
        chance: Floats = special.expit(highest_logits(world, (self.arms,), context) + self.shift)
        return chance

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """The paper's, dense and sparse, and the smallest."""
        yield cls()
        yield cls(shift=-4.0)
        yield cls(arms=1, dimension=1, hidden=1)
