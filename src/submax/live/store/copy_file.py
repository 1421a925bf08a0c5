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
    """Write events and blobs into a new SQLite file that can be opened as a store.

    ``events`` are pairs (name of the stream, event), in order of position; ``blobs`` are pairs
    (name, data). Events keep their positions, because versions and snapshots refer to positions.
    An ``InputError`` is raised if the file exists or its folder does not.
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
    """Yield the path of a temporary file, which is renamed to ``path`` at the end of the block.

    If the block raises an error, the temporary file is deleted, and there is no file at ``path``.
    """
    check_new(path)
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def check_new(path: Path) -> None:
    """Raise an ``InputError`` if the path exists, or if its folder does not exist."""
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
