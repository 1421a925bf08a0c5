"""The tables of a store, as migrations from each schema version to the next."""

from collections.abc import Iterator, Sequence

from submax.core.errors import InputError

Migration = Sequence[str]
"""Statements that are executed in one transaction."""
FIRST = 4
"""The schema version that the first migration leads to. Versions 1 to 3 were never released, and
are not read."""

# The columns of events and streams are explained in `sqlite_format`.
SQLITE: Sequence[Migration] = (
    (
        "CREATE TABLE submax_schema (version INTEGER NOT NULL)",
        """CREATE TABLE streams (
            number INTEGER PRIMARY KEY,
            name TEXT UNIQUE,
            last_position INTEGER NOT NULL
        )""",
        """CREATE TABLE events (
            place INTEGER PRIMARY KEY,
            key_bytes INTEGER,
            record BLOB NOT NULL,
            stream INTEGER AS (place >> 40) VIRTUAL,
            position INTEGER AS (place & 1099511627775) VIRTUAL,
            key BLOB AS (substr(record, 33, key_bytes)) VIRTUAL
        )""",
        "CREATE UNIQUE INDEX events_by_key ON events (stream, key)",
        """CREATE TABLE blobs (
            name TEXT PRIMARY KEY, data BLOB NOT NULL, checksum BLOB NOT NULL
        )""",
    ),
    (
        """CREATE TRIGGER note_end AFTER INSERT ON events BEGIN
            UPDATE streams SET last_position = new.place & 1099511627775
            WHERE number = new.place >> 40;
        END""",
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
            previous BIGINT NOT NULL,
            checksum BYTEA NOT NULL,
            UNIQUE (stream, key)
        )""",
        "CREATE INDEX events_in_order ON events (stream, position)",
        "CREATE TABLE stream_ends (stream TEXT PRIMARY KEY, position BIGINT NOT NULL)",
        """CREATE TABLE blobs (
            name TEXT PRIMARY KEY, data BYTEA NOT NULL, checksum BYTEA NOT NULL
        )""",
    ),
)

COLUMNS = "position, at, kind, key, about, about_position, about_at, body"
"""The columns of an event in PostgreSQL, in the order of the fields of ``Event``."""
SEALED_COLUMNS = f"stream, {COLUMNS}, previous, checksum"
"""All columns of the table of events in PostgreSQL, in the order of ``SealedEvent.of_row``."""
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
"""The names of all streams in PostgreSQL, found by one index lookup for each name and not by a full
scan."""


def newest(migrations: Sequence[Migration]) -> int:
    """The schema version that the last migration leads to."""
    return FIRST + len(migrations) - 1


def check_known(where: str, version: int, migrations: Sequence[Migration]) -> None:
    """Refuse a store whose schema is newer, or older than all that are read."""
    known = newest(migrations)
    if version > known:
        raise InputError(
            f"{where} has schema version {version}, and this submax knows versions up to "
            f"{known}: install a newer submax"
        )
    if 0 < version < FIRST:
        raise InputError(
            f"{where} has schema version {version}, and this submax reads versions from {FIRST}: "
            "export it with the submax that wrote it, and begin a new store"
        )


def pending(version: int, migrations: Sequence[Migration]) -> Iterator[tuple[int, Migration]]:
    """The migrations that are still to be run, each with the version that it leads to."""
    for number, migration in enumerate(migrations, start=FIRST):
        if number > version:
            yield number, migration
