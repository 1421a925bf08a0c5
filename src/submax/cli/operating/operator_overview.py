"""What an operator sees of a bandit."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from submax.live.operating.arm_status import ArmStatus


class OperatorOverview(NamedTuple):
    """The status, policy, version, counts and choices of a bandit, and notices about it."""

    name: str
    status: str
    policy: str | dict[str, Any]
    version: int
    counts: Mapping[str, int]
    arms: list[ArmStatus]
    notices: list[str]
