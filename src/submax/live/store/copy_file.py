"""Write a copy of a store into a new SQLite file."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from submax.core.errors import InputError
from submax.live.store.event import Event
from submax.live.store.migrations import SQLITE

INSERT = """
INSERT INTO events
    (stream, position, at, kind, key, about, about_position, about_at, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def write_copy(
    path: Path, events: Iterable[tuple[str, Event]], blobs: Iterable[tuple[str, bytes]]
) -> None:
    """Write events with their streams, in order of position, and blobs into a new file.

    Events keep their positions, because versions and snapshots refer to positions.
    """
    with new_file(path) as partial, closing(_connected(partial)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        for migration in SQLITE:
            for statement in migration:
                connection.execute(statement)
        connection.execute("INSERT INTO submax_schema VALUES (?)", (len(SQLITE),))
        connection.executemany(INSERT, (_row(stream, event) for stream, event in events))
        connection.executemany("INSERT INTO blobs VALUES (?, ?)", blobs)
        connection.execute("COMMIT")


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A partial file to write to; it gets its name at the end. An existing file is refused."""
    check_new(path)
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def check_new(path: Path) -> None:
    """Refuse a path that exists, or whose folder does not exist."""
    if path.exists():
        raise InputError(f"{str(path)!r} exists and is not replaced: give another name")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} to write to: make it first")


def _row(stream: str, event: Event) -> tuple[object, ...]:
    return (
        stream,
        event.position,
        event.at,
        event.kind,
        event.key,
        event.about,
        event.about_position,
        event.about_at,
        event.body,
    )
