"""What is known about decisions that have not matured."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple


class OpenDecisions(NamedTuple):
    """By id: the reward so far, whether it was activated, and the parts of the reward so far."""

    rewards: Mapping[str, float]
    activated: AbstractSet[str]
    parts: Mapping[str, Mapping[str, float]]
