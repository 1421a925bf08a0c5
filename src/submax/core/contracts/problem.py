"""The description of a bandit problem that a policy is given before it starts."""

from dataclasses import dataclass, replace

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import finite, whole_number
from submax.core.errors import InputError
from submax.core.rewards.binary import Binary
from submax.core.rewards.scale import Scale
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices, Space

BINARY = Binary()
ActionFeatures = tuple[tuple[tuple[float, ...], ...], ...]
"""For each slot, one row of numbers per choice; no rows for a slot without action features."""


@stored("problem")
@dataclass(frozen=True)
class Problem:
    """The action space, the width of the context and the scale of the rewards.

    ``action_features`` holds, for each slot, one row of numbers per choice that describes the
    choice: a policy that uses them expects similar rewards of similar choices. A slot without
    action features has an empty tuple; if no slot has any, ``action_features`` itself is empty.
    ``slot_scale`` is the scale of the reward of each slot, if feedback has one for each slot.

    >>> from submax.core.spaces.arms import Arms
    >>> Problem(Arms(3)).scale
    Binary()
    >>> Problem(Arms(3), action_features=(((1.0,), (2.5,), (4.0,)),)).action_features[0][1]
    (2.5,)
    """

    space: Space
    context_width: int = 0
    scale: Scale = BINARY
    action_features: ActionFeatures = ()
    slot_scale: Scale | None = None

    def __post_init__(self) -> None:
        whole_number("context_width", self.context_width, at_least=0)
        if not isinstance(self.space, Space):
            raise InputError(f"space must be a space such as Arms(3), not {self.space!r}")
        if not isinstance(self.scale, Scale):
            raise InputError(f"scale must be a scale such as Binary(), not {self.scale!r}")
        if self.slot_scale is not None and not isinstance(self.slot_scale, Scale):
            raise InputError(
                f"slot_scale must be None, or a scale such as Binary(), not {self.slot_scale!r}"
            )
        if self.action_features != ():
            self._check_action_features()

    def restricted(self, choices: Choices) -> "Problem":
        """Return the problem with only these choices in each slot.

        >>> from submax.core.spaces.arms import Arms
        >>> Problem(Arms(5)).restricted(((0, 3),)).space
        Arms(count=2)
        """
        features = tuple(
            tuple(rows[choice] for choice in slot) if rows else ()
            for rows, slot in zip(self.action_features, choices, strict=False)
        )
        return replace(self, space=self.space.restricted(choices), action_features=features)

    def check_context(self, context: Floats) -> None:
        """Raise an ``InputError`` unless the context is ``[R, n, D]`` and finite."""
        if context.ndim != 3 or context.shape[-1] != self.context_width:
            raise InputError(
                f"context must have shape [R, n, {self.context_width}], not {list(context.shape)}",
                parameter="context",
            )
        # The sum is a fast test: it is finite if all numbers are, unless it overflows.
        if not np.isfinite(context.sum()) and not np.isfinite(context).all():
            replica, row, column = np.argwhere(~np.isfinite(context))[0]
            raise InputError(
                f"context must be finite, and number {column} of row {row}, replica {replica} is "
                f"{context[replica, row, column]}",
                parameter="context",
            )

    def check_action(self, action: Actions) -> None:
        """Raise an ``InputError`` if an action is not in the action space."""
        if not self.space.contains(action):
            raise InputError(
                f"the action {_first_outside(self.space, action)} is not in {self.space}, whose "
                f"actions have {self.space.slots} parts within their bounds",
                parameter="action",
            )

    def _check_action_features(self) -> None:
        features, choices = self.action_features, self.space.choices
        if not isinstance(features, tuple) or len(features) != len(choices):
            raise InputError(
                f"action_features must be a tuple with rows for each of {len(choices)} slots, an "
                f"empty tuple for a slot without features, not {features!r:.80}",
                parameter="action_features",
            )
        for slot, (rows, count) in enumerate(zip(features, choices, strict=True)):
            if not isinstance(rows, tuple) or len(rows) not in (0, count):
                raise InputError(
                    f"action_features of slot {slot} must be a tuple with a row for each of "
                    f"{count} choices, not {rows!r:.80}",
                    parameter="action_features",
                )
            for choice, row in enumerate(rows):
                if not isinstance(row, tuple) or len(row) != len(rows[0]):
                    raise InputError(
                        f"action_features of slot {slot} must be rows of {len(rows[0])} numbers, "
                        f"as that of choice 0 is, and that of choice {choice} is {row!r:.80}",
                        parameter="action_features",
                    )
                for number in row:
                    finite(f"a feature of choice {choice} in slot {slot}", number)


def _first_outside(space: Space, action: Actions) -> list[float]:
    rows = action.reshape(-1, action.shape[-1])
    found: list[float] = next(row for row in rows if not space.contains(row)).tolist()
    return found
