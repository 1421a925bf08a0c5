"""A decision that was looked up in the log."""

import msgspec

from submax.live.log.records import DecisionMade


class FoundReward(msgspec.Struct, frozen=True):
    """A reward of a decision, ``seconds`` after it; ``parts`` if rewards have names or slots."""

    key: str
    value: float
    at: float
    seconds: float
    late: bool
    parts: dict[str, float] | None
    source: str


class FoundDecision(msgspec.Struct, frozen=True):
    """A decision with the rewards that came for it.

    ``archived`` says that its events were moved to the archive. ``activated_at`` is the time at
    which it was confirmed, None if that was not needed or has not happened.
    """

    id: str
    at: float
    made: DecisionMade
    archived: bool
    activated_at: float | None
    rewards: list[FoundReward]


class DecisionRow(msgspec.Struct, frozen=True):
    """A decision in a list; ``action`` has the indices of its choices, then its numbers."""

    id: str
    at: float
    action: list[float]
    propensity: float
    version: int
    unit: str | None
    holdout: bool
