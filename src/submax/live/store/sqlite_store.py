"""A store in one SQLite file."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from os import urandom
from pathlib import Path
from threading import Lock
from typing import Any

from submax.core.errors import InputError, StoreError
from submax.live.archive.segments.copy_segments import copy_segments
from submax.live.archive.segments.segment_folder import SegmentFolder, archive_folder
from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.columns.sealed_columns import SealedColumns
from submax.live.store.copy_file import new_file
from submax.live.store.event import AppendResult, Entry, Event
from submax.live.store.group_commit import GroupCommit, QueuedAppend
from submax.live.store.integrity.damage import blob_checksum
from submax.live.store.integrity.order import check_order
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.integrity.sqlite_damage import check_copy, sqlite_damage
from submax.live.store.locks.writer_lock import WriterLock
from submax.live.store.migrations import (
    DELETED_AT_ONCE,
    SQLITE,
    Migration,
    check_known,
)
from submax.live.store.sqlite_format.connection import connected, store_errors, transaction
from submax.live.store.sqlite_format.event_row import (
    LAST_POSITION,
    event_of,
    events_of,
    sealed_of,
)
from submax.live.store.sqlite_format.event_writer import EventWriter
from submax.live.store.sqlite_format.packed_key import packed
from submax.live.store.sqlite_format.record_columns import columns_of, sealed_columns_of
from submax.live.store.sqlite_format.schema import prepare, schema_version
from submax.live.store.sqlite_format.statements import (
    DELETE,
    FIND,
    READ,
    READ_BYTES,
    READ_COLUMNS,
    READ_SEALED,
    seal_first,
)
from submax.live.store.store import PAGE, PROBE, Store

PAGE_BYTES = 4096
"""The size of a page of SQLite."""
PUT_BLOB = "INSERT OR REPLACE INTO blobs (name, data, checksum) VALUES (?, ?, ?)"


class SQLiteStore(Store):
    """One process writes, and any number of processes read.

    A lock keeps a second writing process out; see ``WriterLock``. SQLite's write-ahead log
    is synced fully: an append is durable when its future is done, and appends that wait at the same
    time share one sync. A reader sees everything that was committed.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
        migrations: Sequence[Migration] = SQLITE,
    ) -> None:
        self.path = Path(path)
        self._segments = SegmentFolder(archive_folder(self.path))
        self._lock: WriterLock | None = None
        self._reading, self._writing = Lock(), Lock()
        with ExitStack() as held:
            if not read_only:
                self._lock = held.enter_context(WriterLock(self.path))
                self._writer = held.enter_context(closing(connected(self.path, "rwc")))
                prepare(self._writer, self.path, migrations)
                self._events = EventWriter(self._writer, clock)
                self._unsynced_writer = held.enter_context(closing(connected(self.path, "rwc")))
                with store_errors(self.path):
                    self._unsynced_writer.execute("PRAGMA synchronous = NORMAL")
            self._reader = held.enter_context(closing(connected(self.path, "ro")))
            with store_errors(self.path):
                check_known(str(self.path), schema_version(self._reader), migrations)
            self._held = held.pop_all()
        self._commits = None if read_only else GroupCommit(self._write)

    def append(self, stream: str, entries: Sequence[Entry]) -> "Future[list[AppendResult]]":
        if self._commits is None:
            raise self._read_only_error()
        return self._commits.append(stream, entries)

    def appended(self, stream: str) -> int | None:
        # Only the process with the lock writes.
        return None if self._commits is None else self._commits.appended[stream]

    def _write(self, appends: list[QueuedAppend]) -> list[list[AppendResult]]:
        with self._writing, store_errors(self.path):
            return self._events.write_new(appends) or self._events.write(appends)

    @contextmanager
    def _transaction(self, *, synced: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction; transactions wait for each other.

        It is durable at the end or, if it is not ``synced``, when the next one that is synced ends:
        the write-ahead log is one file.
        """
        if self._commits is None:
            raise self._read_only_error()
        connection = self._writer if synced else self._unsynced_writer
        with self._writing, store_errors(self.path), transaction(connection):
            yield connection

    def read(self, stream: str, after: int = 0, limit: int = PAGE) -> list[Event]:
        events = events_of(self._select(READ, (stream, min(after, LAST_POSITION), limit)))
        # Rows are in order, but a damaged record may have any position.
        check_order(after, [event.position for event in events])
        return events

    def read_columns(self, stream: str, after: int = 0, limit: int = PAGE) -> EventColumns:
        return columns_of(self._records(stream, after, limit))

    def read_sealed_columns(self, stream: str, after: int, limit: int) -> SealedColumns:
        return sealed_columns_of(stream, self._records(stream, after, limit))

    def _records(self, stream: str, after: int, limit: int) -> bytes | None:
        """The records of some events, one after the other; None if there are no events."""
        values = (stream, min(after, LAST_POSITION), limit)
        try:
            ((records,),) = self._select(READ_COLUMNS, values)
        except InputError as error:
            # SQLite has no longer values than 10⁹ bytes.
            if not isinstance(error.__cause__, sqlite3.DataError):
                raise
            return b"".join(record for (record,) in self._select(READ_BYTES, values) if record)
        return records  # type: ignore[no-any-return]  # of any type if the file is damaged

    def read_sealed(self, stream: str, after: int, limit: int) -> list[SealedEvent]:
        return [sealed_of(row) for row in self._select(READ_SEALED, (stream, after, limit))]

    def find(self, stream: str, key: str) -> Event | None:
        rows = self._select(FIND, (stream, packed(key)))
        return event_of(rows[0][0]) if rows else None

    def streams(self) -> list[str]:
        rows = self._select("SELECT name FROM streams WHERE number > 0 ORDER BY name", ())
        return [name for (name,) in rows]

    def put_blob(self, name: str, data: bytes) -> None:
        with self._transaction(synced=False) as connection:
            connection.execute(PUT_BLOB, (name, data, blob_checksum(name, data)))

    def get_blob(self, name: str) -> bytes | None:
        rows = self._select("SELECT data FROM blobs WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def delete_blob(self, name: str) -> None:
        with self._transaction(synced=False) as connection:
            connection.execute("DELETE FROM blobs WHERE name = ?", (name,))

    def check_writable(self) -> None:
        # Synced, because some disks complain only then. A probe needs at least as much room in the
        # write-ahead log as a decision.
        with self._transaction() as connection:
            data = urandom(4 * PAGE_BYTES)
            connection.execute(PUT_BLOB, (PROBE, data, blob_checksum(PROBE, data)))

    def delete_events(self, stream: str, up_to: int) -> None:
        deleted = DELETED_AT_ONCE
        while deleted == DELETED_AT_ONCE:
            with self._transaction() as connection:
                self._events.forget_ends()
                values = (stream, min(up_to, LAST_POSITION), DELETED_AT_ONCE)
                deleted = connection.execute(DELETE, values).rowcount
                seal_first(connection, stream)

    def delete_blobs(self, prefix: str) -> None:
        with self._transaction() as connection:
            connection.execute(
                "DELETE FROM blobs WHERE substr(name, 1, ?) = ?", (len(prefix), prefix)
            )

    def put_segment(self, name: str, segment: str, data: bytes) -> None:
        if self._commits is None:
            raise self._read_only_error()
        self._segments.put(name, segment, data)

    def get_segment(self, name: str, segment: str) -> bytes | None:
        return self._segments.get(name, segment)

    def delete_segments(self, name: str) -> None:
        if self._commits is None:
            raise self._read_only_error()
        self._segments.delete(name)

    def shrink(self) -> None:
        """Write the whole file anew without its free pages; other calls wait as long."""
        if self._commits is None:
            raise self._read_only_error()
        with self._writing, store_errors(self.path):
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def try_lead(self, task: str) -> bool:
        return self.leads(task)

    def leads(self, task: str) -> bool:
        """Whether this process may write: the one process that may leads every task."""
        return self._lock is not None and self._lock.held

    def resign(self, task: str) -> None:
        """Do nothing: no other process can lead while this one has the file open."""

    def damage(self) -> Iterator[str]:
        return sqlite_damage(self.path)

    @property
    def place(self) -> str:
        return str(self.path.resolve())

    def backup(self, path: Path) -> None:
        with store_errors(self.path), new_file(path) as partial:
            with (
                closing(connected(self.path, "ro")) as source,
                closing(sqlite3.connect(partial)) as target,
            ):
                source.backup(target)
            check_copy(partial, str(self.path))
            copy_segments(self, path)

    def close(self) -> None:
        if self._commits is not None:
            self._commits.close()
        with self._writing, self._reading:
            self._held.close()

    def _select(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with self._reading, store_errors(self.path):
            return self._reader.execute(statement, values).fetchall()

    def _read_only_error(self) -> StoreError:
        return StoreError(
            f"{self.path} was opened only to be read, so that nothing can be written: open it "
            "without read_only"
        )
