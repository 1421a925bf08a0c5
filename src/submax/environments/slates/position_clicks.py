"""Slates whose items are looked at less the lower they are."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.checks import probability
from submax.core.contracts.problem import Problem
from submax.core.rewards.discrete import Discrete
from submax.environments.slates.slate_environment import SlateEnvironment


@dataclass(frozen=True)
class PositionClicks(SlateEnvironment):
    """The position-based model: someone looks at position p with probability γ^(p − 1).

    Whoever looks at an item clicks on it with the item's attraction, independently for all
    positions. The reward is the number of clicks. γ is ``decay``. `SlateEnvironment` says how
    attractions are drawn.

    Reference: Lagrée, Vernade and Cappé (2016), Multiple-play bandits in the position-based model.
    """

    items: int = 6
    positions: int = 3
    decay: float = 0.7
    alpha: float = 1.0
    beta: float = 4.0

    def __post_init__(self) -> None:
        self.check_slate()
        probability("decay", self.decay)

    @property
    def problem(self) -> Problem:
        numbers = tuple(float(clicks) for clicks in range(self.positions + 1))
        return Problem(self.space, scale=Discrete(numbers))

    def looked_at(self) -> Floats:
        looked: Floats = np.power(self.decay, np.arange(self.positions, dtype=np.float64))
        return looked

    def reward_of(self, clicks: Booleans) -> Floats:
        number: Floats = clicks.sum(axis=-1).astype(np.float64)
        return number

    def mean_of(self, attraction: Floats) -> Floats:
        mean: Floats = attraction @ self.looked_at()
        return mean
