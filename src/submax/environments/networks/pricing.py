"""Setting a price: the action is the price, the reward is the revenue."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Actions, Floats
from submax.core.checks import non_negative, positive, whole_number
from submax.core.contracts.environment import Environment, Outcome
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.box import Box
from submax.environments.networks.truth_network import draw_directions

INTERCEPT_RANGE = (1.0, 3.0)
"""The range of a₀, the log-odds of a sale at price 0 for an average buyer: 73 % to 95 %."""
TASTE_DEVIATION = 0.5
"""The standard deviation of each coordinate of a, and so of a·c, because contexts have length 1."""
BEST_PRICE_RANGE = (0.2, 0.8)
"""The range of the best price of an average buyer, as shares of the way from low to high: away
from the ends, so that the best price is not a matter of the bounds."""


class Demand(NamedTuple):
    """The demand in every replica: ``intercept [R]`` is a₀, ``taste [R, D]`` a, ``slope [R]`` β."""

    intercept: Floats
    taste: Floats
    slope: Floats


@dataclass(frozen=True)
class Pricing(Environment[Demand]):
    """The reward is the price p if there is a sale: P(sale | p, c) = σ(a₀ + a·c − β p), β > 0.

    p is any number from ``low`` to ``high``. Contexts c are uniform on the unit sphere in
    R^``context``; if ``context`` is 0, there are no contexts. In each replica a₀ is uniform in
    [1, 3], each coordinate of a is normal with standard deviation ½, and β is such that the best
    price of an average buyer, a·c = 0, is uniform in the middle three fifths of the range.

    With α = a₀ + a·c the mean reward is p σ(α − β p). Its derivative is 0 if 1 + e^(α − βp) = βp.
    With u = βp − 1 this is u eᵘ = e^(α − 1), so p* = (1 + W(e^(α − 1))) / β, where W is Lambert's
    function. The mean reward rises up to p* and falls after it, so that a p* outside the range is
    moved to the nearer end.

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
            raise InputError(
                f"low must be below high, not {self.low} and {self.high}: exchange the two, or "
                "widen the range of prices",
                parameter="low",
            )
        whole_number("context", self.context, at_least=0)

    @property
    def problem(self) -> Problem:
        scale = Continuous(low=0.0, high=float(self.high))
        return Problem(Box((float(self.low),), (float(self.high),)), self.context, scale)

    def reset(self, replicas: int, rng: np.random.Generator) -> Demand:
        intercept = rng.uniform(*INTERCEPT_RANGE, size=replicas)
        taste = TASTE_DEVIATION * rng.standard_normal((replicas, self.context))
        share = rng.uniform(*BEST_PRICE_RANGE, size=replicas)
        best_price = self.low + share * (self.high - self.low)
        return Demand(intercept, taste, (1 + scipy.special.wrightomega(intercept - 1)) / best_price)

    def contexts(self, world: Demand, count: int, rng: np.random.Generator) -> Floats:
        return draw_directions(len(world.intercept), count, self.context, rng)

    def mean_reward(self, world: Demand, context: Floats, action: Actions) -> Floats:
        return self._means(world, context, action[..., 0])[0]

    def reward(
        self, world: Demand, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: Demand, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        price = action[..., 0]
        mean, sale = self._means(world, context, price)
        return Outcome(price * (rng.random(sale.shape) < sale), mean)

    def best_price(self, world: Demand, context: Floats) -> Floats:
        """The price p* in each context: ``[R, n]``."""
        excess = scipy.special.wrightomega(_log_odds(world, context) - 1)
        price = (1 + excess) / world.slope[:, None]
        return np.clip(price, self.low, self.high)

    def best_reward(self, world: Demand, context: Floats) -> Floats:
        return self._means(world, context, self.best_price(world, context))[0]

    def _means(self, world: Demand, context: Floats, price: Floats) -> tuple[Floats, Floats]:
        """The mean reward and the probability of a sale at each price, both ``[R, n]``."""
        sale = scipy.special.expit(_log_odds(world, context) - world.slope[:, None] * price)
        return price * sale, sale


def _log_odds(world: Demand, context: Floats) -> Floats:
    """α(c) = a₀ + a·c, the log-odds of a sale at price 0: ``[R, n]``."""
    log_odds: Floats = world.intercept[:, None] + (context @ world.taste[..., None])[..., 0]
    return log_odds
