"""Statements of a store in PostgreSQL."""

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from submax.live.store.integrity.sealed_event import POSTGRES_CHECKSUM, SealedEvent
from submax.live.store.migrations import COLUMNS, SEALED_COLUMNS

if TYPE_CHECKING:
    from psycopg import Connection

INSERT = f"""
WITH fresh AS (
    SELECT nextval(pg_get_serial_sequence('events', 'position')) AS position,
           extract(epoch FROM clock_timestamp())::float8 AS at,
           %(stream)s::text AS stream, %(kind)s::text AS kind, %(key)s::text AS key,
           %(about)s::text AS about, %(body)s::bytea AS body,
           coalesce(earlier.position, 0) AS about_position, coalesce(earlier.at, 0.0) AS about_at,
           coalesce((SELECT max(position) FROM events WHERE stream = %(stream)s::text), 0)
               AS previous
    FROM (SELECT) AS nothing
    LEFT JOIN events AS earlier
           ON earlier.stream = %(stream)s::text AND earlier.key = %(about)s::text
), written AS (
    INSERT INTO events ({SEALED_COLUMNS}) OVERRIDING SYSTEM VALUE
    SELECT {SEALED_COLUMNS.removesuffix("checksum")} {POSTGRES_CHECKSUM} FROM fresh
    ON CONFLICT (stream, key) DO NOTHING
    RETURNING {COLUMNS}
)
SELECT true, {COLUMNS} FROM written
UNION ALL
SELECT false, {COLUMNS} FROM events WHERE stream = %(stream)s::text AND key = %(key)s::text
"""
"""Writes an event, unless the stream has one with the same key. Returns the event under this key,
after a column that says whether it is new. Both halves of the union see the table as it was before
the statement, so exactly one half returns a row."""
DELETE = """
DELETE FROM events WHERE position IN (
    SELECT position FROM events WHERE stream = %s AND position <= %s ORDER BY position LIMIT %s
)
"""
FIRST_EVENT = f"SELECT {SEALED_COLUMNS} FROM events WHERE stream = %s ORDER BY position LIMIT 1"
END = """
INSERT INTO stream_ends (stream, position)
SELECT stream, position FROM events WHERE stream = %s ORDER BY position DESC LIMIT 1
ON CONFLICT (stream) DO UPDATE SET position = excluded.position
WHERE stream_ends.position <> excluded.position
"""
"""Record the last position of a stream, so that a log whose end is lost is noticed."""
LOCK = "SELECT count(pg_advisory_xact_lock(lock)) FROM unnest(%s::bigint[]) AS lock"
"""Waits for several advisory locks, which are released at the end of the transaction."""


def first_value(answer: Any) -> Any:
    """Return the first value of the first row of an answer."""
    return answer.fetchone()[0]


def lock_number(name: str) -> int:
    """Return the hash of a name as a signed 64-bit number, which identifies an advisory lock."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)


def seal_first(connection: "Connection[Any]", stream: str) -> None:
    """Make the first event that is left the first one of its stream, after others were deleted."""
    row = connection.execute(FIRST_EVENT, (stream,), binary=True).fetchone()
    if row is None:
        connection.execute("DELETE FROM stream_ends WHERE stream = %s", (stream,))
        return
    sealed = SealedEvent.of_row(row)
    # A damaged event keeps its wrong checksum, so that the damage is still found.
    if sealed.previous != 0 and sealed.whole:
        first = sealed.as_first()
        connection.execute(
            "UPDATE events SET previous = %s, checksum = %s WHERE position = %s",
            (first.previous, first.checksum, first.event.position),
        )
