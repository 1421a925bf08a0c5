"""What a policy is told about the world before it starts."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import whole_number
from submax.core.errors import InvalidValue
from submax.core.space import Space


@dataclass(frozen=True)
class Problem:
    """The actions, the width of the context and the reward levels, lowest first.

    >>> from submax.core.arms import Arms
    >>> Problem(Arms(3)).levels
    (0.0, 1.0)
    """

    space: Space
    context_width: int = 0
    levels: tuple[float, ...] = (0.0, 1.0)

    def __post_init__(self) -> None:
        whole_number("context_width", self.context_width, at_least=0)
        if len(self.levels) < 2 or not np.all(np.isfinite(self.levels)):
            raise InvalidValue(f"levels must be two finite rewards or more, not {self.levels}")
        if np.any(np.diff(self.levels) <= 0):
            raise InvalidValue(f"levels must rise from lowest to highest, not {self.levels}")

    def check_context(self, context: Floats) -> None:
        """Refuse contexts ``[R, n, D]`` of another width, or with numbers that are not finite."""
        if context.ndim != 3 or context.shape[-1] != self.context_width:
            raise InvalidValue(
                f"context must have shape [R, n, {self.context_width}], not {list(context.shape)}"
            )
        # The sum of finite numbers is finite unless it overflows, and then the slow look decides.
        if not np.isfinite(context.sum()) and not np.isfinite(context).all():
            replica, row, column = np.argwhere(~np.isfinite(context))[0]
            raise InvalidValue(
                f"context must be finite, and number {column} of row {row}, replica {replica} is "
                f"{context[replica, row, column]}"
            )

    def check_action(self, action: Integers) -> None:
        """Refuse actions that are not in the space."""
        if not self.space.contains(action):
            raise InvalidValue(
                f"an action has {self.space.slots} choices, each from 0 to below "
                f"{list(self.space.choices)}, and {_stranger(self.space, action)} is none"
            )

    def level_index(self, reward: Floats) -> Integers:
        """The nearest reward level of each reward, as its position in ``levels``."""
        values = np.array(self.levels)
        borders = (values[1:] + values[:-1]) / 2
        index = np.zeros(reward.shape, dtype=np.int64)
        for border in borders:
            index += reward > border
        return index


def _stranger(space: Space, action: Integers) -> list[int]:
    """The first action that is not in the space."""
    rows = action.reshape(-1, action.shape[-1])
    found: list[int] = next(row for row in rows if not space.contains(row)).tolist()
    return found
