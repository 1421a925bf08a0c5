"""Base class of delays that are drawn for every single decision."""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import probability
from submax.core.errors import InputError
from submax.simulation.delay import Delay, Step

NEVER = np.int64(2**62)
"""The wait of a reward that never comes back."""


class RandomDelay(Delay):
    """Every reward comes back after a random number of further decisions, or never.

    Decisions are taken one by one. Rewards can overtake each other, and every replica has delays of
    its own. ``missing`` is the probability that a reward never comes back. ``means``, if given, has
    the mean delay of every joint action, by index.
    """

    mean: float
    means: tuple[float, ...] | None
    missing: float

    def check_random(self) -> None:
        """Refuse parameters that are not allowed."""
        probability("missing", self.missing)
        self._check_mean("mean", self.mean)
        if self.means is not None:
            if not isinstance(self.means, tuple) or not self.means:
                raise InputError(
                    "means must be a tuple with the mean delay of every action, such as (10, 50), "
                    f"not {self.means!r}",
                    parameter="means",
                )
            for one in self.means:
                self._check_mean("each of means", one)

    def schedule(self, observations: int) -> Iterator[Step]:
        """Single decisions; which rewards come back is drawn, see ``waits``."""
        for _ in range(observations):
            yield Step(1, 0)

    @property
    def length(self) -> int:
        return round(self.mean)

    def waits(self, index: Integers, rng: np.random.Generator) -> Integers:
        """Draw after how many further decisions each reward comes back; `NEVER` if it does not.

        ``index`` are the joint actions that were taken, in any shape.
        """
        mean: Floats = np.full(index.shape, self.mean)
        if self.means is not None:
            if index.max(initial=0) >= len(self.means):
                raise InputError(
                    f"means of the delay has {len(self.means)} numbers, and action "
                    f"{index.max()} was taken: give a mean for every action",
                    parameter="means",
                )
            mean = np.array(self.means, dtype=np.float64)[index]
        drawn = self.draw(mean, rng)
        return np.where(rng.random(index.shape) < self.missing, NEVER, drawn)

    @abstractmethod
    def draw(self, mean: Floats, rng: np.random.Generator) -> Integers:
        """Draw a delay with each of these means, in decisions."""

    @abstractmethod
    def _check_mean(self, name: str, value: object) -> None:
        """Refuse a mean that the distribution cannot have."""
