"""Write a copy of a store into a new SQLite file."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from submax.core.errors import InputError
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.integrity.sqlite_damage import check_copy
from submax.live.store.migrations import SQLITE, newest
from submax.live.store.sqlite_format.event_row import INSERT, stored_row
from submax.live.store.sqlite_format.stream_ends import NEW

BLOB = "INSERT INTO blobs (name, data, checksum) VALUES (?, ?, ?)"


def write_copy(
    path: Path,
    source: str,
    events: Iterable[SealedEvent],
    ends: Mapping[str, int],
    blobs: Iterable[tuple[str, bytes, bytes]],
    finish: Callable[[], None],
) -> None:
    """Write events and blobs into a new SQLite file that can be opened as a store.

    ``events`` are in order of position, ``ends`` are the recorded last positions of streams, and
    ``blobs`` are triples (name, data, checksum). Events keep their positions, because versions and
    snapshots refer to positions, and their checksums; streams keep their recorded ends. So damage
    of the store or on the way is found. ``source`` names the copied store in errors. ``finish`` is
    called before the file gets its name. An ``InputError`` is raised if the file exists or its
    folder does not, a ``StoreError`` if the copy is damaged.
    """
    with new_file(path) as partial:
        with closing(sqlite3.connect(partial, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN")
            _create_tables(connection)
            numbers = {stream: number for number, stream in enumerate(ends, start=1)}
            # Before the streams are written, so that the trigger does not change a recorded end.
            connection.executemany(INSERT, _rows(events, numbers))
            connection.executemany(
                NEW, [(number, stream, ends.get(stream, 0)) for stream, number in numbers.items()]
            )
            connection.executemany(BLOB, blobs)
            connection.execute("COMMIT")
        check_copy(partial, source)
        finish()


def _create_tables(connection: sqlite3.Connection) -> None:
    for migration in SQLITE:
        for statement in migration:
            connection.execute(statement)
    connection.execute("INSERT INTO submax_schema VALUES (?)", (newest(SQLITE),))


def _rows(events: Iterable[SealedEvent], numbers: dict[str, int]) -> Iterator[tuple[object, ...]]:
    """The rows of events; ``numbers`` are those of their streams, to which new ones are added."""
    for sealed in events:
        yield stored_row(numbers.setdefault(sealed.stream, len(numbers) + 1), sealed)


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
