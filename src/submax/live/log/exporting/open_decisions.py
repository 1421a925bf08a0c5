"""What is known about decisions that have not matured."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple


class OpenDecisions(NamedTuple):
    """By position: the reward so far, its parts, and which decisions were activated later."""

    rewards: Mapping[int, float]
    activated: AbstractSet[int]
    parts: Mapping[int, Mapping[str, float]]
