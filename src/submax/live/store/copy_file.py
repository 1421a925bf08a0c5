"""A copy of a store, written at once."""

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
    path: Path, events: Iterable[tuple[str, Event]], pieces: Iterable[tuple[str, bytes]]
) -> None:
    """Write events with their streams, in order, and pieces into a new file.

    Positions stay what they are, since versions and snapshots speak of them.
    """
    with new_file(path) as partial, closing(_connected(partial)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        for migration in SQLITE:
            for statement in migration:
                connection.execute(statement)
        connection.execute("INSERT INTO submax_schema VALUES (?)", (len(SQLITE),))
        connection.executemany(INSERT, (_row(stream, event) for stream, event in events))
        connection.executemany("INSERT INTO pieces VALUES (?, ?)", pieces)
        connection.execute("COMMIT")


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to be written, which gets its name when it is whole; nothing is written over."""
    check_new(path)
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def check_new(path: Path) -> None:
    """Refuse to write over something."""
    if path.exists():
        raise InputError(f"{str(path)!r} is there already: give another name")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r}")


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
