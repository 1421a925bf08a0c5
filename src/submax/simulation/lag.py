"""Rewards that come back a fixed number of decisions later, one by one."""

from collections.abc import Iterator
from dataclasses import dataclass

from submax.core.checks import whole_number
from submax.simulation.delay import Delay, Step


@dataclass(frozen=True)
class Lag(Delay):
    """Every reward comes back after ``steps`` further decisions have been taken.

    >>> list(Lag(2).schedule(5))
    [Step(decide=3, receive=1), Step(decide=1, receive=1), Step(decide=1, receive=1)]
    """

    steps: int = 0

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=0)

    def schedule(self, observations: int) -> Iterator[Step]:
        """The first ``steps`` decisions get no reward back; then one comes with each decision."""
        if observations <= self.steps:
            yield Step(observations, 0)
            return
        yield Step(self.steps + 1, 1)
        for _ in range(observations - self.steps - 1):
            yield Step(1, 1)

    @property
    def length(self) -> int:
        return self.steps

    @property
    def immediate(self) -> bool:
        return self.steps == 0

    @property
    def one_by_one(self) -> bool:
        return True
