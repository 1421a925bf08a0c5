"""Cascading clicks: people look from top to bottom and click once."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.contracts.problem import Problem
from submax.core.rewards.discrete import Discrete
from submax.environments.slates.slate_environment import SlateEnvironment


@dataclass(frozen=True)
class Cascade(SlateEnvironment):
    """Someone looks at the items from the first position on, and leaves after the first click.

    A click at position p of K ``positions`` pays (K + 1 − p) / K, and no click pays 0. So the
    reward also says where the click was, and it is best to show the most attractive items first.
    With w_p the attraction of the item at position p, the mean reward is
    Σ_p (K + 1 − p) / K · w_p Π_{q<p} (1 − w_q). `SlateEnvironment` says how attractions are drawn.

    Reference: Kveton et al. (2015), Cascading bandits: learning to rank in the cascade model.

    *Departs from the paper:* there every click pays 1, and the position is observed beside it.
    """

    items: int = 6
    positions: int = 3
    alpha: float = 1.0
    beta: float = 4.0

    def __post_init__(self) -> None:
        self.check_slate()

    @property
    def problem(self) -> Problem:
        return Problem(self.space, scale=Discrete((0.0, *sorted(self.payments().tolist()))))

    def payments(self) -> Floats:
        """Return what a click at each position pays, from 1 down to 1 / K."""
        payments: Floats = np.arange(self.positions, 0, -1) / self.positions
        return payments

    def looked_at(self) -> Floats:
        return np.ones(self.positions)

    def reward_of(self, clicks: Booleans) -> Floats:
        first = clicks.argmax(axis=-1)
        return np.where(clicks.any(axis=-1), self.payments()[first], 0.0)

    def mean_of(self, attraction: Floats) -> Floats:
        passed = np.cumprod(1 - attraction, axis=-1)
        reached = np.concatenate([np.ones_like(passed[..., :1]), passed[..., :-1]], axis=-1)
        mean: Floats = (reached * attraction) @ self.payments()
        return mean
