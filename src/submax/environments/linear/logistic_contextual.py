"""Arms whose success probabilities are logistic in a context."""

from dataclasses import dataclass

import numpy as np
import scipy

from submax.core.arrays import Actions, Floats
from submax.core.checks import finite, positive, whole_number
from submax.core.contracts.environment import Outcome
from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.environments.linear.given_table import Rows, checked_rows
from submax.environments.linear.linear_environment import LinearEnvironment


@dataclass(frozen=True)
class LogisticContextual(LinearEnvironment):
    """K arms with rewards 0 and 1, P(1 | a, c) = σ(θ_a · c + s), where σ(x) = 1 / (1 + e^−x).

    K is ``arms``, the width of the context D is ``dimension``, s is ``shift``, and the standard
    deviation of θ_a · c is ``spread``. If ``parameters`` are given, K rows of D numbers, they are θ
    in every replica. `LinearEnvironment` says how contexts and parameters are drawn.

    Reference: the logistic model of Chapelle and Li (2011), section 3.
    """

    arms: int = 4
    dimension: int = 5
    shift: float = 0.0
    spread: float = 1.0
    parameters: Rows | None = None

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        whole_number("dimension", self.dimension, at_least=1)
        finite("shift", self.shift)
        positive("spread", self.spread)
        if self.parameters is not None:
            checked_rows("parameters", self.parameters, self.arms, self.dimension)

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), self.dimension)

    def mean_of(self, product: Floats) -> Floats:
        probability: Floats = scipy.special.expit(product + self.shift)
        return probability

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        probability = self.mean_reward(world, context, action)
        success = rng.random(probability.shape) < probability
        return Outcome(success.astype(np.float64), probability)
