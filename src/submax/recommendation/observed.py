"""What can be seen of a problem in a log or in a store."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.recommendation.answers import NUMBER, Rewards, binary_word, count_word
from submax.recommendation.recommendation import Recommendation
from submax.schema.schema import Schema

MOST_RATINGS = 10
"""Rewards with at most this many different whole values, none of them 0, are ratings."""


class Observed(ABC):
    """The answers that a log or a store gives, and the code that uses a policy there.

    ``batch`` is how many decisions are made before their rewards are learned from; None if this
    cannot be seen. ``mean`` is that of the rewards, None if there are none yet, and ``values`` are
    the rewards, if they are known one by one.
    """

    schema: Schema
    mean: float | None
    values: Floats | None = None
    batch: int | None = None

    @abstractmethod
    def with_its_code(self, found: Recommendation) -> Recommendation:
        """Return the recommendation with Python and commands for this log or store."""

    def answer(self, question: str) -> Any:
        """Return the answer to a question; None if it cannot be seen."""
        if question == "actions":
            return self._sizes() or NUMBER
        if question == "context":
            return self.schema.context.width > 0
        if question == "rewards":
            return self._rewards()
        return self.batch if question == "batch" else None

    def _sizes(self) -> list[int]:
        """The number of active choices in each slot; empty if a number is chosen."""
        return [] if self.schema.menu.ranges else [len(one) for one in self.schema.menu.active]

    def _rewards(self) -> Rewards | None:
        """The word for the rewards.

        Numbers are what a log has if nothing was declared: their values say more.
        """
        kind, mean, values = self.schema.rewards["kind"], self.mean, self.values
        if kind == "discrete":
            return "ratings"
        if mean is None:
            return "numbers" if kind == "continuous" else None
        if kind != "continuous":
            return binary_word(mean) if kind == "binary" else count_word(mean)
        if values is None or (values % 1 != 0).any() or values.min() < 0:
            return "numbers"
        few = len(np.unique(values)) <= MOST_RATINGS
        return "ratings" if few and values.min() >= 1 else count_word(mean)
