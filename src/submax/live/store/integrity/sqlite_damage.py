"""Find damage in a SQLite file."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from submax.core.errors import StoreError
from submax.live.store.integrity.damage import damaged_blobs, damaged_events
from submax.live.store.sqlite_format.connection import connected, store_errors
from submax.live.store.sqlite_format.event_row import SEALED_ROW, sealed_of
from submax.live.store.sqlite_format.stream_ends import NOBODY

ENDS = f"SELECT name, last_position FROM streams WHERE number <> {NOBODY}"
EVENTS = f"SELECT {SEALED_ROW} FROM events LEFT JOIN streams ON number = stream ORDER BY place"
SHOWN = 3
"""Findings that are named in an error; the doctor names more."""


def sqlite_damage(path: Path, mode: str = "ro") -> Iterator[str]:
    """What is wrong with the file, its events and its blobs, as they are at this moment."""
    with store_errors(path), closing(connected(path, mode)) as connection:
        # Text of a damaged row may be no UTF-8, and must not stop the search.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        connection.execute("BEGIN")
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
        if found != ["ok"]:
            yield f"the database file is damaged: {'; '.join(found)[:300]}"
        ends = dict(connection.execute(ENDS).fetchall())
        yield from damaged_events(map(sealed_of, connection.execute(EVENTS)), ends)
        yield from damaged_blobs(connection.execute("SELECT name, data, checksum FROM blobs"))


def check_copy(copy: Path, source: str) -> None:
    """Refuse a copy that has damage, before it gets its name."""
    # Nobody else uses the copy, and a reader of a mutable file would leave files beside it.
    found = list(sqlite_damage(copy, "ro&immutable=1"))
    if found:
        raise StoreError(
            f"the copy of {source} is not kept, since it is damaged ({'; '.join(found[:SHOWN])}): "
            "run submax doctor on the store; if the store is whole, the disk of the copy is not"
        )
