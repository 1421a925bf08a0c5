"""The bodies of the events of alarms, which have a stream of their own."""

import msgspec

RAISED, ENDED, ACKNOWLEDGED = "raised", "ended", "acknowledged"
"""The kinds of events in the stream of alarms. The body of ``ended`` is the kind of the alarm that
is over; ``acknowledged`` has no body: somebody has seen all alarms so far."""
REWARD_RATE, MISSING_REWARDS, CONTEXT, REFITS, PROPENSITY = (
    "reward-rate",
    "missing-rewards",
    "context",
    "refits",
    "propensity",
)
"""The kinds of alarms."""


class Alarm(msgspec.Struct, frozen=True):
    """An alarm in one ``sentence`` for people, with its ``values`` for programs.

    ``at`` is the time, in seconds since the epoch, and ``active`` whether it is neither over nor
    acknowledged. ``subject`` is the field of the context, if it is about one.
    """

    kind: str
    sentence: str
    values: dict[str, float]
    subject: str = ""
    at: float = 0.0
    active: bool = True
