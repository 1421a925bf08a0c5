"""All open connections, and which of them are closed if there are too many."""

from collections.abc import Callable
from typing import Protocol

SHED = "shed"
"""The reason for which a connection is closed that makes room for a new one."""
TOO_MANY = "too_many"
"""The reason for which a new connection is closed if all others have a request under way."""


class Connection(Protocol):
    """What the table needs of a connection."""

    def shed(self) -> None:
        """Close the connection now."""


class ConnectionTable:
    """At most ``most`` connections, in the order in which they are given up for new ones.

    First goes the oldest connection that has not sent a complete request head, then the one that
    has been idle longest after a request. A connection with a request under way is never given up.
    ``count`` is called with the reason whenever a connection is closed.

    >>> table = ConnectionTable(2, count=print)
    >>> class Silent:
    ...     def shed(self):
    ...         print("closed")
    >>> [table.add(Silent()) for _ in range(3)]
    shed
    closed
    [True, True, True]
    """

    def __init__(self, most: int, count: Callable[[str], None]) -> None:
        self.count = count
        self._most = most
        # Dictionaries keep the order in which keys were added; the values are not used.
        self._waiting: dict[Connection, None] = {}
        self._idle: dict[Connection, None] = {}
        self._busy: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._idle) + len(self._busy)

    def add(self, connection: Connection) -> bool:
        """Add a new connection; False if there is no room for it and none can be made."""
        if len(self) >= self._most and not self._make_room():
            self.count(TOO_MANY)
            return False
        self._waiting[connection] = None
        return True

    def set_busy(self, connection: Connection) -> None:
        """The connection has sent a complete head, and its request is under way."""
        if self.remove(connection):
            self._busy.add(connection)

    def set_idle(self, connection: Connection) -> None:
        """The request of the connection was answered, and the next one may come."""
        if self.remove(connection):
            self._idle[connection] = None

    def remove(self, connection: Connection) -> bool:
        """Remove a connection; False if it is not in the table, for example because it was shed."""
        for part in (self._waiting, self._idle):
            if connection in part:
                del part[connection]
                return True
        if connection in self._busy:
            self._busy.remove(connection)
            return True
        return False

    def _make_room(self) -> bool:
        for part in (self._waiting, self._idle):
            oldest = next(iter(part), None)
            if oldest is not None:
                del part[oldest]
                self.count(SHED)
                oldest.shed()
                return True
        return False
