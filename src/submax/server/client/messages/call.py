"""One request to a server."""

from typing import Any, NamedTuple

TRIAL_SECONDS = 90.0
"""Seconds within which a server has tried a policy: its limit is 60, and it may have to wait."""


class Call(NamedTuple):
    """A request: its method, its path after that of the bandit, its body, the type of its answer.

    ``until`` is the time, by the monotonic clock, after which it is given up; None: never. A call
    whose policy the server tries first is ``slow``: its answer may take ``TRIAL_SECONDS``.
    """

    method: str
    path: str
    body: bytes | None
    kind: Any
    until: float | None = None
    slow: bool = False
