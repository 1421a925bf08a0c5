"""The schema of a bandit or a log: actions, context and rewards."""

from functools import cached_property
from typing import Any

import msgspec

from submax.core.problem import Problem
from submax.core.rewards import Scale
from submax.schema.actions import ActionSpec
from submax.schema.context import ContextSchema
from submax.schema.rewards import scale_of

METADATA = "submax"
"""The metadata key under which a Parquet file stores the schema."""


class Schema(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The actions, the fields of the context and the scale of the rewards, of a bandit or a log.

    ``rewards`` is the table of a scale as ``rewards_of`` returns it: its ``kind``, such as
    "binary", and its parameters. A table that did not pass ``rewards_of`` is not checked here.
    ``slot_rewards`` is such a table, too, if every slot has a reward of its own.
    """

    menu: ActionSpec
    context: ContextSchema = ContextSchema()
    rewards: dict[str, Any] = msgspec.field(default_factory=lambda: {"kind": "binary"})
    slot_rewards: dict[str, Any] | None = None

    @property
    def scale(self) -> Scale:
        """The scale that the table ``rewards`` describes."""
        return scale_of(self.rewards)

    @cached_property
    def problem(self) -> Problem:
        """The problem that a policy is told; its actions are the active choices of the menu."""
        menu, active = self.menu, self.menu.active
        features = menu.action_features(active)
        slot_scale = None if self.slot_rewards is None else scale_of(self.slot_rewards)
        return Problem(menu.space(active), self.context.width, self.scale, features, slot_scale)
