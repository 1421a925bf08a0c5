"""One request to a server."""

from typing import Any, NamedTuple


class Call(NamedTuple):
    """A request: its method, its path after that of the bandit, its body, the type of its answer.

    ``until`` is the time, by the monotonic clock, after which it is given up; None: never.
    """

    method: str
    path: str
    body: bytes | None
    kind: Any
    until: float | None = None
