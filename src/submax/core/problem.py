"""What a policy is told about the world before it starts."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.binary import Binary
from submax.core.checks import whole_number
from submax.core.errors import InvalidValue
from submax.core.scale import Scale
from submax.core.space import Space

BINARY = Binary()


@dataclass(frozen=True)
class Problem:
    """The actions, the width of the context and the scale of the rewards.

    >>> from submax.core.arms import Arms
    >>> Problem(Arms(3)).scale
    Binary()
    """

    space: Space
    context_width: int = 0
    scale: Scale = BINARY

    def __post_init__(self) -> None:
        whole_number("context_width", self.context_width, at_least=0)
        if not isinstance(self.space, Space):
            raise InvalidValue(f"space must be a space such as Arms(3), not {self.space!r}")
        if not isinstance(self.scale, Scale):
            raise InvalidValue(f"scale must be a scale such as Binary(), not {self.scale!r}")

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

    def check_action(self, action: Actions) -> None:
        """Refuse actions that are not in the space."""
        if not self.space.contains(action):
            raise InvalidValue(
                f"an action of {self.space} has {self.space.slots} parts within its bounds, "
                f"and {_stranger(self.space, action)} is none"
            )


def _stranger(space: Space, action: Actions) -> list[float]:
    """The first action that is not in the space."""
    rows = action.reshape(-1, action.shape[-1])
    found: list[float] = next(row for row in rows if not space.contains(row)).tolist()
    return found
