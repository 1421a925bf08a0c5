"""The policy that always takes one action."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.checks import did_you_mean
from submax.core.errors import InputError
from submax.core.summary import listed
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.schema.schema import Schema

ALWAYS = "always="
"""``always=A`` is the policy that takes the action A in every row."""
EVERY = "*"
"""``always=*`` stands for one such policy for each action of the log."""


class FixedAction(TargetPolicy):
    """π(a | x) = 1 for one action, given by its name."""

    def __init__(self, action: str, schema: Schema) -> None:
        names = _names(schema, f"{ALWAYS}{action}")
        if action not in names:
            raise InputError(
                f"the policy is {ALWAYS}{action}, and the actions of the log are {listed(names)}: "
                f"name one of them, or {ALWAYS}{EVERY} for each{did_you_mean(action, names)}",
                parameter="policies",
            )
        self.name, self._place, self._size = f"{ALWAYS}{action}", names.index(action), len(names)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        table = np.zeros((len(context), self._size))
        table[:, self._place] = 1.0
        return table


def with_every_action(candidates: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return policies by name, with one for each action in place of ``always=*``.

    If the caller gave it another name, such as ``mine``, they are called ``mine=A``, ``mine=B``.
    """
    found: dict[str, Any] = {}
    for name, one in candidates.items():
        added = {name: one}
        if isinstance(one, str) and one == ALWAYS + EVERY:
            prefix = ALWAYS if name == one else f"{name}="
            added = {f"{prefix}{action}": f"{ALWAYS}{action}" for action in _names(schema, one)}
        for twice in added.keys() & found.keys():
            if not isinstance(found[twice], str) or found[twice] != added[twice]:
                raise InputError(
                    f"two policies are called {twice}: give one of them another name",
                    parameter="policies",
                )
        found |= added
    return found


def _names(schema: Schema, policy: str) -> list[str]:
    if len(schema.menu.slots) != 1 or schema.menu.ranges:
        raise InputError(
            f"{policy} was given, and this log has several slots or real-valued actions; one "
            "action is a policy for plain actions: give a function or an array of probabilities in "
            "Python",
            parameter="policies",
        )
    return [choice.name for choice in schema.menu.slots[0].choices]
