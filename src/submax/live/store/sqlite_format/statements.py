"""Statements of a store in SQLite.

The column ``place`` is the row id of an event: the number of its stream, shifted by
``POSITION_BITS``, plus its position. The events of a stream are thus one range of places. The
columns ``gap`` (the distance to the position of the previous event of the stream) and ``checksum``
are the seal of an event: they show whether it was changed or its neighbours are lost.
"""

import sqlite3

from submax.live.store.sqlite_format.event_row import (
    COLUMNS_ROW,
    INSERT,
    POSITION_BITS,
    ROW,
    SEALED_ROW,
    sealed_of,
)
from submax.live.store.sqlite_format.stream_ends import forget_stream

INSERT_NEW = f"{INSERT} ON CONFLICT (stream, key) DO NOTHING"
STREAM = "(SELECT number FROM streams WHERE name = ?)"
BEGIN = f"(SELECT number << {POSITION_BITS} AS begin FROM streams WHERE name = ?)"
"""The place before the first event of a stream."""
ABOUT = "SELECT position, at FROM events WHERE stream = ? AND key = ?"
"""The earlier event that a new event is about, such as the decision of a reward."""
FIND = f"SELECT position, {ROW} FROM events WHERE stream = {STREAM} AND key = ?"
RANGE = f"""
FROM events, {BEGIN}
WHERE place > begin + ? AND place < begin + (1 << {POSITION_BITS}) ORDER BY place LIMIT ?
"""
"""At most so many events of a stream, after a position."""
READ = f"SELECT position, {ROW} {RANGE}"
READ_COLUMNS = f"SELECT {COLUMNS_ROW} {RANGE}"
READ_SEALED = f"""
SELECT {SEALED_ROW} FROM streams JOIN events ON place > (number << {POSITION_BITS}) + ?2
AND place < (number + 1) << {POSITION_BITS} WHERE name = ?1 ORDER BY place LIMIT ?3
"""
DELETE = f"""
DELETE FROM events WHERE place IN (
    SELECT place FROM events, {BEGIN}
    WHERE place > begin AND place <= begin + ? ORDER BY place LIMIT ?
)
"""
FIRST_EVENT = f"""
SELECT {SEALED_ROW} FROM streams JOIN events ON place > number << {POSITION_BITS}
AND place < (number + 1) << {POSITION_BITS} WHERE name = ? ORDER BY place LIMIT 1
"""


def seal_first(connection: sqlite3.Connection, stream: str) -> None:
    """Seal the first event that is left as the first of its stream, after others were deleted.

    Otherwise the deleted events would look lost, because the seal names the previous event.
    """
    row = connection.execute(FIRST_EVENT, (stream,)).fetchone()
    if row is None:
        forget_stream(connection, stream)
        return
    sealed = sealed_of(row)
    # A damaged event keeps its wrong checksum, so that the damage is still found.
    if sealed.previous != 0 and sealed.whole:
        first = sealed.as_first()
        connection.execute(
            "UPDATE events SET gap = position, checksum = ? WHERE place = "
            f"({STREAM} << {POSITION_BITS}) + ?",
            (first.checksum, stream, first.event.position),
        )
