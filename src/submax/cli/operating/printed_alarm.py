"""An alarm as a command prints it."""

from typing import NamedTuple


class PrintedAlarm(NamedTuple):
    """An alarm in one sentence; ``at`` is its time as a text, in UTC."""

    kind: str
    at: str
    active: bool
    sentence: str
