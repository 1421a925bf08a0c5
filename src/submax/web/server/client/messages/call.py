"""One request to a server."""

from typing import Any, NamedTuple

TRIAL_ANSWER_SECONDS = 90.0
"""How long a client waits for an answer if the server first tries out a policy. The server stops a
trial after 60 seconds, and other trials may come before it."""


class Call(NamedTuple):
    """A request to a server, or to one of its bandits.

    ``path`` is relative to the address of the ``Caller``: ``/keys`` at a server, ``/decide`` at a
    bandit. The answer is decoded as ``kind``. ``until`` is the time, by the monotonic clock, after
    which the client gives up; None means never. A call is ``slow`` if it brings a policy that the
    server tries out first: its answer may take ``TRIAL_ANSWER_SECONDS``.
    """

    method: str
    path: str
    body: bytes | None
    kind: Any
    until: float | None = None
    slow: bool = False
