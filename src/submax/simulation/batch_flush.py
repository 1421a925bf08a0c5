"""Rewards that come back in batches."""

from collections.abc import Iterator
from dataclasses import dataclass

from submax.core.checks import whole_number
from submax.simulation.delay import Delay, Step


@dataclass(frozen=True)
class BatchFlush(Delay):
    """Rewards come back together after every ``size`` decisions (N_b in the paper).

    >>> list(BatchFlush(2).schedule(5))
    [Step(decide=2, receive=2), Step(decide=2, receive=2), Step(decide=1, receive=0)]

    Reference: the delay buffer of Xu et al. (2024), section 4.1.
    """

    size: int = 1

    def __post_init__(self) -> None:
        whole_number("size", self.size, at_least=1)

    def schedule(self, observations: int) -> Iterator[Step]:
        """Full batches, then the remaining decisions, whose rewards never come back."""
        for _ in range(observations // self.size):
            yield Step(self.size, self.size)
        if rest := observations % self.size:
            yield Step(rest, 0)

    @property
    def length(self) -> int:
        return self.size

    @property
    def immediate(self) -> bool:
        return self.size == 1
