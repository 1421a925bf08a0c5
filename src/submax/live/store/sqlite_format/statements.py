"""Statements of a store in SQLite.

The column ``place`` is the row id of an event: the number of its stream, shifted by
``POSITION_BITS``, plus its position. The events of a stream are thus one range of places. The
column ``record`` has all of an event (``event_record``), so that many events are read as one value;
``key_bytes`` is how many bytes of the record are the key, and ``key`` is that part of the record.
"""

import sqlite3
from functools import cache

from submax.live.store.sqlite_format.event_record import AT_PLACE, AT_SIZE, record_of
from submax.live.store.sqlite_format.event_row import (
    INSERT,
    POSITION_BITS,
    SEALED_ROW,
    sealed_of,
)
from submax.live.store.sqlite_format.packed_key import packed
from submax.live.store.sqlite_format.stream_ends import forget_stream

INSERT_NEW = f"{INSERT} ON CONFLICT (stream, key) DO NOTHING"
"""Writes nothing if the key exists."""
STREAM = "(SELECT number FROM streams WHERE name = ?)"
BEGIN = f"(SELECT number << {POSITION_BITS} AS begin FROM streams WHERE name = ?)"
"""The place before the first event of a stream."""
AT = f"substr(record, {AT_PLACE}, {AT_SIZE})"
ABOUT = f"SELECT position, {AT} FROM events WHERE stream = ? AND key = ?"
"""The earlier event that a new event is about, such as the decision of a reward."""
FIND = f"SELECT record FROM events WHERE stream = {STREAM} AND key = ?"
RANGE = f"""
FROM events, {BEGIN}
WHERE place > begin + ? AND place < begin + (1 << {POSITION_BITS}) ORDER BY place LIMIT ?
"""
"""At most so many events of a stream, after a position."""
READ = f"SELECT record {RANGE}"
READ_COLUMNS = f"SELECT CAST(group_concat(record, '') AS BLOB) FROM ({READ})"
"""All records one after the other: one object of Python for a page, and not some for each event.
SQLite joins blobs as texts, whose bytes it does not look at, and in the order of the query inside,
because that query has a limit. A record has its size and its position, so that nothing depends on
this: records that were joined in another way are refused."""
READ_BYTES = f"SELECT CAST(record AS BLOB) {RANGE}"
"""The same records one by one, for a page that is longer than a value of SQLite may be."""
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


@cache
def insert_rows(count: int) -> str:
    """Return the statement that writes several events, all of them or none."""
    return INSERT + ", (?, ?, ?)" * (count - 1)


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
        record = record_of(first, packed(first.event.key))
        connection.execute(
            f"UPDATE events SET record = ? WHERE place = ({STREAM} << {POSITION_BITS}) + ?",
            (record, stream, first.event.position),
        )
