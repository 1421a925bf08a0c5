"""Arms whose mean rewards are linear in a context."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import non_negative, positive, whole_number
from submax.core.contracts.environment import Outcome
from submax.core.contracts.problem import Problem
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.environments.linear.given_table import Rows, checked_rows
from submax.environments.linear.linear_environment import LinearEnvironment


@dataclass(frozen=True)
class LinearContextual(LinearEnvironment):
    """K arms with rewards θ_a · c + σ ε, ε ~ N(0, 1).

    K is ``arms``, the width of the context D is ``dimension``, σ is ``noise``, and the standard
    deviation of θ_a · c is ``spread``. If ``parameters`` are given, K rows of D numbers, they are θ
    in every replica. `LinearEnvironment` says how contexts and parameters are drawn.

    Reference: the disjoint linear model of Li et al. (2010).
    """

    arms: int = 4
    dimension: int = 5
    noise: float = 0.5
    spread: float = 1.0
    parameters: Rows | None = None

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        whole_number("dimension", self.dimension, at_least=1)
        non_negative("noise", self.noise)
        positive("spread", self.spread)
        if self.parameters is not None:
            checked_rows("parameters", self.parameters, self.arms, self.dimension)

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), self.dimension, Continuous())

    def mean_of(self, product: Floats) -> Floats:
        return product

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        mean = self.mean_reward(world, context, action)
        return Outcome(mean + self.noise * rng.standard_normal(mean.shape), mean)
