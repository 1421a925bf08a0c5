"""The tables of a store, as migrations from each schema version to the next."""

from collections.abc import Iterator, Sequence

from submax.core.errors import InputError

Migration = Sequence[str]
"""Statements that are executed in one transaction."""

SQLITE: Sequence[Migration] = (
    (
        "CREATE TABLE submax_schema (version INTEGER NOT NULL)",
        """CREATE TABLE events (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            stream TEXT NOT NULL,
            at REAL NOT NULL,
            kind TEXT NOT NULL,
            key TEXT,
            about TEXT,
            about_position INTEGER NOT NULL,
            about_at REAL NOT NULL,
            body BLOB NOT NULL,
            UNIQUE (stream, key)
        )""",
        "CREATE INDEX events_in_order ON events (stream, position)",
        "CREATE TABLE blobs (name TEXT PRIMARY KEY, data BLOB NOT NULL)",
    ),
)

POSTGRES: Sequence[Migration] = (
    (
        "CREATE TABLE submax_schema (version INTEGER NOT NULL)",
        """CREATE TABLE events (
            position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            stream TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL,
            kind TEXT NOT NULL,
            key TEXT,
            about TEXT,
            about_position BIGINT NOT NULL,
            about_at DOUBLE PRECISION NOT NULL,
            body BYTEA NOT NULL,
            UNIQUE (stream, key)
        )""",
        "CREATE INDEX events_in_order ON events (stream, position)",
        "CREATE TABLE blobs (name TEXT PRIMARY KEY, data BYTEA NOT NULL)",
    ),
)

COLUMNS = "position, at, kind, key, about, about_position, about_at, body"
"""The columns of an event, in the order of the fields of ``Event``."""
DELETED_AT_ONCE = 10_000
"""The most events that are deleted in one transaction, so that other writers do not wait long."""
STREAMS = """
WITH RECURSIVE names(name) AS (
    SELECT min(stream) FROM events
    UNION ALL
    SELECT (SELECT min(stream) FROM events WHERE stream > name) FROM names WHERE name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL
"""
"""The names of all streams, found by one index lookup for each name and not by a full scan."""


def check_known(where: str, version: int, newest: int) -> None:
    """Refuse a store whose schema was written by a newer submax."""
    if version > newest:
        raise InputError(
            f"{where} has schema version {version}, and this submax knows versions up to "
            f"{newest}: install a newer submax"
        )


def pending(version: int, migrations: Sequence[Migration]) -> Iterator[tuple[int, Migration]]:
    """The migrations that are still to be run, each with the version that it leads to."""
    for number, migration in enumerate(migrations, start=1):
        if number > version:
            yield number, migration
