"""Arms that are described by features, on which their mean rewards depend linearly."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import non_negative, positive, whole_number
from submax.core.contracts.environment import Outcome
from submax.core.contracts.problem import Problem
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.environments.arms.arm_environment import ArmEnvironment
from submax.environments.linear.given_table import Rows, checked_rows


@dataclass(frozen=True)
class DescribedArms(ArmEnvironment[Floats]):
    """K arms with features x_a in R^D, which policies are given, and rewards θ · x_a + σ ε.

    K is ``arms``, D is ``dimension``, σ is ``noise``, ε ~ N(0, 1). θ is drawn from
    N(0, I τ² / D), τ is ``spread``, for each replica. The features are the same in all replicas:
    ``features``, K rows of D numbers, or normal numbers that ``features_seed`` determines. The
    world is the table of mean rewards, ``[R, K]``.

    Reference: Dani, Hayes and Kakade (2008), Stochastic linear optimization under bandit feedback.
    """

    arms: int = 20
    dimension: int = 5
    noise: float = 0.5
    spread: float = 1.0
    features_seed: int = 0
    features: Rows | None = None

    def __post_init__(self) -> None:
        for name in ("arms", "dimension"):
            whole_number(name, getattr(self, name), at_least=1)
        whole_number("features_seed", self.features_seed, at_least=0)
        non_negative("noise", self.noise)
        positive("spread", self.spread)
        self.table()

    def table(self) -> Floats:
        """Return the features of all arms, ``[K, D]``."""
        if self.features is not None:
            return checked_rows("features", self.features, self.arms, self.dimension)
        rng = np.random.default_rng(self.features_seed)
        return rng.standard_normal((self.arms, self.dimension))

    @property
    def problem(self) -> Problem:
        rows = tuple(tuple(map(float, row)) for row in self.table())
        return Problem(Arms(self.arms), scale=Continuous(), action_features=(rows,))

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        drawn = rng.standard_normal((replicas, self.dimension))
        means: Floats = drawn * (self.spread / np.sqrt(self.dimension)) @ self.table().T
        return means

    def arm_means(self, world: Floats) -> Floats:
        return world

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        mean = self.mean_reward(world, context, action)
        return Outcome(mean + self.noise * rng.standard_normal(mean.shape), mean)
