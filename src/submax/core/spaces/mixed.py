"""The action space of choices in slots together with real-valued parts."""

from dataclasses import dataclass

from submax.core.running.stored import stored
from submax.core.spaces.real_space import RealSpace, check_bounds
from submax.core.spaces.slots import Slots


@stored("mixed")
@dataclass(frozen=True)
class Mixed(RealSpace):
    """One of ``sizes[s]`` choices in each slot s, followed by numbers between ``low`` and ``high``.

    >>> Mixed((3, 2), (0.0,), (1.0,)).slots
    3
    """

    sizes: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        Slots(self.sizes)
        check_bounds(self.low, self.high)

    @property
    def choices(self) -> tuple[int, ...]:
        return self.sizes
