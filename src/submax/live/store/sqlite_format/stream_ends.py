"""The numbers of the streams in a SQLite file, and where each of them ends."""

import sqlite3

NOBODY = 0
"""The number of no stream. Its row has no name, and the highest position of streams that were
deleted, so that no position is used twice."""
NEW = "INSERT INTO streams (number, name, last_position) VALUES (?, ?, ?)"
FORGET = f"""
INSERT INTO streams (number, name, last_position)
SELECT {NOBODY}, NULL, last_position FROM streams WHERE name = ?
ON CONFLICT (number) DO UPDATE SET last_position = max(last_position, excluded.last_position)
"""


class StreamEnds:
    """The number and the last position of every stream, as the only writing process knows them.

    The tables note the end of a stream themselves whenever an event is written. After a transaction
    that failed, the object is of no use.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute("SELECT name, number, last_position FROM streams").fetchall()
        self._numbers: dict[str, int] = {
            name: number for name, number, _ in rows if number != NOBODY
        }
        self._ends: dict[str, int] = {name: position for name, _, position in rows}
        self._last = max(self._ends.values(), default=0)

    def __contains__(self, stream: str) -> bool:
        """Whether a stream has a number."""
        return stream in self._numbers

    def number(self, stream: str) -> int:
        """Return the number of a stream; a new stream gets one."""
        if stream not in self._numbers:
            number = max(self._numbers.values(), default=NOBODY) + 1
            self._connection.execute(NEW, (number, stream, 0))
            self._numbers[stream], self._ends[stream] = number, 0
        return self._numbers[stream]

    def end(self, stream: str) -> int:
        """Return the last position of a stream; 0 if it has no event."""
        return self._ends[stream]

    @property
    def next_position(self) -> int:
        """The position of the next event, whatever its stream."""
        return self._last + 1

    def advance(self, stream: str) -> None:
        """Note that an event was written to a stream at ``next_position``."""
        self._last += 1
        self._ends[stream] = self._last


def forget_stream(connection: sqlite3.Connection, stream: str) -> None:
    """Delete the end of a stream that has no events left; its positions are not used again."""
    connection.execute(FORGET, (stream,))
    connection.execute("DELETE FROM streams WHERE name = ?", (stream,))
