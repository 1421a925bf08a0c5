"""The action space of plain arms."""

from dataclasses import dataclass

from submax.core.arrays import Integers
from submax.core.checks import whole_number
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices, Space


@stored("arms")
@dataclass(frozen=True)
class Arms(Space):
    """One choice among ``count`` arms.

    >>> Arms(3).size, Arms(3).slots
    (3, 1)
    """

    count: int

    def __post_init__(self) -> None:
        whole_number("arms", self.count, at_least=1)

    @property
    def slots(self) -> int:
        return 1

    @property
    def choices(self) -> tuple[int, ...]:
        return (self.count,)

    @property
    def size(self) -> int:
        return self.count

    def index(self, action: Integers) -> Integers:
        return action[..., 0]

    def action(self, index: Integers) -> Integers:
        return index[..., None]

    def restricted(self, choices: Choices) -> "Arms":
        return Arms(len(choices[0]))

    def contains(self, action: Integers) -> bool:
        inside = action.min(initial=0) >= 0 and action.max(initial=0) < self.count
        return action.shape[-1] == 1 and bool(inside)
