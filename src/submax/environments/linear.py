"""Arms whose rewards are linear or logistic in a context or in action features."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy

from submax.core.arrays import Actions, Floats
from submax.core.checks import Allowed, Count, Finite, NonNegative, Positive, whole_number
from submax.core.errors import InputError
from submax.core.problem import Problem
from submax.core.rewards import Continuous
from submax.core.spaces import Arms
from submax.environments.arms import ArmEnvironment, DrawnFromMean, Successes, WithNoise

Rows = tuple[tuple[float, ...], ...]


def checked_rows(name: str, rows: object, count: int, width: int) -> Floats:
    """Return the rows as an array ``[count, width]``; refuse anything else."""
    try:
        table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.shape != (count, width) or not np.isfinite(table).all():
        raise InputError(
            f"{name} must be {count} rows of {width} finite numbers, one row for each arm, not "
            f"{rows!r:.80}{_advice(table)}",
            parameter=name,
        )
    return table


def _advice(table: Floats) -> str:
    """Return which sizes belong to a table that has rows of one length."""
    if table.ndim != 2 or not np.isfinite(table).all():
        return ""
    count, width = table.shape
    return f": give arms = {count} and dimension = {width} with this table"


class LinearEnvironment(DrawnFromMean[Floats]):
    """K arms, each with parameters θ_a in R^D; the mean reward is a rising function of θ_a · c.

    Contexts c are normal with independent numbers of mean 0 and variance 1. θ_a is drawn from
    N(0, I τ² / D), so that θ_a · c has the standard deviation τ, unless ``parameters`` are given.
    The world is the table of parameters, ``[R, K, D]``.
    """

    arms: Count
    dimension: Count
    spread: Positive
    parameters: Rows | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parameters is not None:
            checked_rows("parameters", self.parameters, self.arms, self.dimension)

    @abstractmethod
    def mean_of(self, product: Floats) -> Floats:
        """Return the mean rewards of actions with these products θ_a · c."""

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        if self.parameters is not None:
            table = checked_rows("parameters", self.parameters, self.arms, self.dimension)
            return np.tile(table, (replicas, 1, 1))
        drawn = rng.standard_normal((replicas, self.arms, self.dimension))
        return drawn * (self.spread / math.sqrt(self.dimension))

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        return rng.standard_normal((len(world), count, self.dimension))

    def mean_reward(self, world: Floats, context: Floats, action: Actions) -> Floats:
        chosen = np.take_along_axis(world, action, axis=1)
        return self.mean_of(np.einsum("rnd,rnd->rn", chosen, context))

    def best_reward(self, world: Floats, context: Floats) -> Floats:
        # The same sum as in mean_reward, arm by arm, so that no arm is better by rounding.
        product = np.einsum("rkd,rnd->rkn", world, context).max(axis=1)
        return self.mean_of(product)


@dataclass(frozen=True)
class LinearContextual(WithNoise[Floats], LinearEnvironment):
    """K arms with rewards θ_a · c + σ ε, ε ~ N(0, 1).

    K is ``arms``, the width of the context D is ``dimension``, σ is ``noise``, and the standard
    deviation of θ_a · c is ``spread``. If ``parameters`` are given, K rows of D numbers, they are θ
    in every replica. `LinearEnvironment` says how contexts and parameters are drawn.

    Reference: the disjoint linear model of Li et al. (2010).
    """

    arms: int = 4
    dimension: int = 5
    noise: NonNegative = 0.5
    spread: float = 1.0
    parameters: Rows | None = None

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), self.dimension, Continuous())

    def mean_of(self, product: Floats) -> Floats:
        return product


@dataclass(frozen=True)
class LogisticContextual(Successes[Floats], LinearEnvironment):
    """K arms with rewards 0 and 1, P(1 | a, c) = σ(θ_a · c + s), where σ(x) = 1 / (1 + e^−x).

    K is ``arms``, the width of the context D is ``dimension``, s is ``shift``, and the standard
    deviation of θ_a · c is ``spread``. If ``parameters`` are given, K rows of D numbers, they are θ
    in every replica. `LinearEnvironment` says how contexts and parameters are drawn.

    Reference: the logistic model of Chapelle and Li (2011), section 3.
    """

    arms: int = 4
    dimension: int = 5
    shift: Finite = 0.0
    spread: float = 1.0
    parameters: Rows | None = None

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), self.dimension)

    def mean_of(self, product: Floats) -> Floats:
        return scipy.special.expit(product + self.shift)


@dataclass(frozen=True)
class DescribedArms(WithNoise[Floats], ArmEnvironment[Floats]):
    """K arms with features x_a in R^D, which policies are given, and rewards θ · x_a + σ ε.

    K is ``arms``, D is ``dimension``, σ is ``noise``, ε ~ N(0, 1). θ is drawn from
    N(0, I τ² / D), τ is ``spread``, for each replica. The features are the same in all replicas:
    ``features``, K rows of D numbers, or normal numbers that ``features_seed`` determines. The
    world is the table of mean rewards, ``[R, K]``.

    Reference: Dani, Hayes and Kakade (2008), Stochastic linear optimization under bandit feedback.
    """

    arms: Count = 20
    dimension: Count = 5
    noise: NonNegative = 0.5
    spread: Positive = 1.0
    features_seed: Annotated[int, Allowed(whole_number, at_least=0)] = 0
    features: Rows | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
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
        return drawn * (self.spread / np.sqrt(self.dimension)) @ self.table().T
