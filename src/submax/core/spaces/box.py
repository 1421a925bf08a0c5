"""The action space of real-valued actions."""

from dataclasses import dataclass

from submax.core.running.stored import stored
from submax.core.spaces.real_space import RealSpace, check_bounds


@stored("box")
@dataclass(frozen=True)
class Box(RealSpace):
    """One number in each dimension, between ``low`` and ``high``.

    >>> Box((0.0,), (10.0,)).slots
    1
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        check_bounds(self.low, self.high)

    @property
    def choices(self) -> tuple[int, ...]:
        return ()
