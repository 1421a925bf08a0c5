"""What can be decided, in which contexts, and what can come back."""

from typing import Any

import msgspec

from submax.core.contracts.problem import Problem
from submax.core.rewards.scale import Scale
from submax.schema.context_schema import ContextSchema
from submax.schema.menu import Menu
from submax.schema.rewards import scale_of

METADATA = "submax"
"""Where a Parquet file says what it holds."""


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """Actions, contexts and rewards by name; of a live bandit, or of a log."""

    menu: Menu
    context: ContextSchema = ContextSchema()
    rewards: dict[str, Any] = msgspec.field(default_factory=lambda: {"kind": "binary"})

    @property
    def scale(self) -> Scale:
        """The scale of the rewards."""
        return scale_of(self.rewards)

    @property
    def problem(self) -> Problem:
        """What a policy is told, with all active choices."""
        menu, active = self.menu, self.menu.active
        features = menu.action_features(active)
        return Problem(menu.space(active), self.context.width, self.scale, features)
