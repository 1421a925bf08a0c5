"""A price to be set."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from submax.core.arrays import Actions, Floats
from submax.core.checks import non_negative, positive, whole_number
from submax.core.contracts.environment import Environment, Outcome
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.box import Box
from submax.environments.networks.truth_network import draw_directions

INTEREST = (1.0, 3.0)
"""The range of a₀."""
TASTE = 0.5
"""The spread of a·c."""
USUAL_PRICE = (0.2, 0.8)
"""Where the best price lies in the box when a·c = 0: shares of the way from low to high."""


class Demand(NamedTuple):
    """``interest [R]`` is a₀, ``taste [R, D]`` is a and ``fall [R]`` is β."""

    interest: Floats
    taste: Floats
    fall: Floats


@dataclass(frozen=True)
class Pricing(Environment[Demand]):
    """A price p pays p where it sells: P(sale | p, c) = σ(α(c) − β p), α(c) = a₀ + a·c, β > 0.

    p is any number from ``low`` to ``high``; contexts c are uniform on the unit sphere in
    R^``context``, and with 0 there are none. In each replica a₀ is uniform in [1, 3], a is normal
    with spread ½ in each direction, and β is such that the best price of a buyer with a·c = 0 is
    uniform in the middle three fifths of the range.

    The mean is p σ(α − β p). Its slope is 0 where 1 + e^(α − βp) = βp; with u = βp − 1 this is
    u eᵘ = e^(α − 1), so p* = (1 + W(e^(α − 1))) / β, W being Lambert's function. The slope is
    positive before p* and negative after it; so a p* outside the range is moved to its nearer end.

    Reference: Aravindakshan and Ratchford (2011), Solving share equations in logit models using the
    LambertW function. W(eᶻ) is computed as Wright's ω(z), which does not overflow.
    """

    low: float = 1.0
    high: float = 10.0
    context: int = 2

    def __post_init__(self) -> None:
        non_negative("low", self.low)
        positive("high", self.high)
        if not self.low < self.high:
            raise InputError(f"low must be below high, not {self.low} and {self.high}")
        whole_number("context", self.context, at_least=0)

    @property
    def problem(self) -> Problem:
        """A price, a context, rewards from 0 to the highest price."""
        scale = Continuous(low=0.0, high=float(self.high))
        return Problem(Box((float(self.low),), (float(self.high),)), self.context, scale)

    def reset(self, replicas: int, rng: np.random.Generator) -> Demand:
        """Draw the demand of each replica."""
        interest = rng.uniform(*INTEREST, size=replicas)
        taste = TASTE * rng.standard_normal((replicas, self.context))
        share = rng.uniform(*USUAL_PRICE, size=replicas)
        usual = self.low + share * (self.high - self.low)
        return Demand(interest, taste, (1 + special.wrightomega(interest - 1)) / usual)

    def contexts(self, world: Demand, count: int, rng: np.random.Generator) -> Floats:
        """Points on the unit sphere."""
        return draw_directions(len(world.interest), count, self.context, rng)

    def mean_reward(self, world: Demand, context: Floats, action: Actions) -> Floats:
        """The price times the chance of a sale."""
        return self._means(world, context, action[..., 0])[0]

    def reward(
        self, world: Demand, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        """The price or nothing."""
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: Demand, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        """Find the chance once for both."""
        price = action[..., 0]
        mean, chance = self._means(world, context, price)
        return Outcome(price * (rng.random(chance.shape) < chance), mean)

    def best_price(self, world: Demand, context: Floats) -> Floats:
        """The price p* in each context: ``[R, n]``."""
        price = (1 + special.wrightomega(_level(world, context) - 1)) / world.fall[:, None]
        return np.clip(price, self.low, self.high)

    def best_reward(self, world: Demand, context: Floats) -> Floats:
        """The mean at the best price."""
        return self._means(world, context, self.best_price(world, context))[0]

    def _means(self, world: Demand, context: Floats, price: Floats) -> tuple[Floats, Floats]:
        """The mean reward and the chance of a sale at each price."""
        chance = special.expit(_level(world, context) - world.fall[:, None] * price)
        return price * chance, chance

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """The default, no contexts, and a range from 0 on."""
        yield cls()
        yield cls(context=0)
        yield cls(low=0.0, high=1.0, context=5)


def _level(world: Demand, context: Floats) -> Floats:
    """α(c): ``[R, n]``."""
    level: Floats = world.interest[:, None] + (context @ world.taste[..., None])[..., 0]
    return level
