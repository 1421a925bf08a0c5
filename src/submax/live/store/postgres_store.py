"""A store in a PostgreSQL database."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submax.core.errors import StoreError
from submax.core.optional import require_extra
from submax.live.archive.segments.copy_segments import copy_segments
from submax.live.store.copy_file import write_copy
from submax.live.store.event import AppendResult, Entry, Event
from submax.live.store.group_commit import GroupCommit, QueuedAppend
from submax.live.store.integrity.damage import blob_checksum, damaged_blobs, damaged_events
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.migrations import (
    COLUMNS,
    DELETED_AT_ONCE,
    POSTGRES,
    SEALED_COLUMNS,
    STREAMS,
    Migration,
)
from submax.live.store.postgres.schema import check_there, prepare
from submax.live.store.postgres.statements import (
    DELETE,
    END,
    INSERT,
    LOCK,
    first_value,
    lock_number,
    seal_first,
)
from submax.live.store.store import PAGE, Store, is_segment

if TYPE_CHECKING:
    from psycopg import Connection, Cursor


class PostgresStore(Store):
    """A store to which any number of processes may write.

    A constraint of the database keeps keys unique. A writer holds the lock of its stream until the
    commit, so that events become visible in the order of their positions. Times of events are those
    of the database's clock. The tables are found by the search path of the connection, and are
    created in its first schema.

    With ``read_only`` no tables are created, nothing can be appended, and the store never leads. An
    ``InputError`` is raised if the database holds no store, or tables of another kind or of a newer
    version; a ``StoreError`` if the database cannot be reached.
    """

    def __init__(
        self,
        address: str,
        *,
        read_only: bool = False,
        migrations: Sequence[Migration] = POSTGRES,
    ) -> None:
        require_extra("postgres", "a store in PostgreSQL", "psycopg")
        from submax.live.store.postgres.connection import PostgresConnection

        self._address = address
        self._connection: Callable[[], PostgresConnection] = lambda: PostgresConnection(address)
        self._writer, self._reader = self._connection(), self._connection()
        self._leader = self._connection()
        self._led: tuple[Connection[Any] | None, set[str]] = None, set()
        self._read_only = read_only
        try:
            with self._transaction() as connection:
                if read_only:
                    check_there(connection, self._writer.where, migrations)
                else:
                    prepare(connection, self._writer.where, migrations)
                self._table = int(first_value(connection.execute("SELECT 'events'::regclass::oid")))
        except BaseException:
            self._writer.close()
            raise
        self._commits = GroupCommit(self._write)

    def append(self, stream: str, entries: Sequence[Entry]) -> "Future[list[AppendResult]]":
        self._refuse_if_read_only()
        return self._commits.append(stream, entries)

    def _write(self, appends: list[QueuedAppend]) -> list[list[AppendResult]]:
        # All processes take locks in the same order, so that two never wait for each other.
        locks = sorted({self._lock("stream", append.stream) for append in appends})
        with self._transaction() as connection, connection.pipeline() as pipeline:
            connection.execute(LOCK, (locks,))
            answers = [
                [
                    connection.execute(INSERT, _values(append.stream, entry), binary=True)
                    for entry in append.entries
                ]
                for append in appends
            ]
            for stream in {append.stream for append in appends}:
                connection.execute(END, (stream,))
            pipeline.sync()
            return [[_written(answer.fetchone()) for answer in each] for each in answers]

    @contextmanager
    def _transaction(self) -> "Iterator[Connection[Any]]":
        """Yield a connection in a transaction, which is durable after the block.

        Transactions of several threads wait for each other.
        """
        with self._writer.use() as connection, connection.transaction():
            yield connection

    @contextmanager
    def _write_transaction(self) -> "Iterator[Connection[Any]]":
        """Yield a connection in a transaction; a store that is only read raises a StoreError."""
        self._refuse_if_read_only()
        with self._transaction() as connection:
            yield connection

    def _refuse_if_read_only(self) -> None:
        if self._read_only:
            raise StoreError(
                f"{self._writer.where} was opened only to be read, so that nothing can be written: "
                "open it without read_only"
            )

    def _lock(self, what: str, name: str) -> int:
        """Return the number of the advisory lock of a stream or a task.

        Advisory locks belong to the whole database, in which each schema may have a store of its
        own. So the number also depends on the table of events.
        """
        return lock_number(f"submax {self._table} {what} {name}")

    def read(self, stream: str, after: int = 0, limit: int = PAGE) -> list[Event]:
        rows = self._select(
            f"SELECT {COLUMNS} FROM events WHERE stream = %s AND position > %s "
            "ORDER BY position LIMIT %s",
            (stream, after, limit),
        )
        return [Event(*row) for row in rows]

    def read_sealed(self, stream: str, after: int, limit: int) -> list[SealedEvent]:
        rows = self._select(
            f"SELECT {SEALED_COLUMNS} FROM events WHERE stream = %s AND position > %s "
            "ORDER BY position LIMIT %s",
            (stream, after, limit),
        )
        return [SealedEvent.of_row(row) for row in rows]

    def find(self, stream: str, key: str) -> Event | None:
        rows = self._select(
            f"SELECT {COLUMNS} FROM events WHERE stream = %s AND key = %s", (stream, key)
        )
        return Event(*rows[0]) if rows else None

    def streams(self) -> list[str]:
        rows = self._select(STREAMS, ())
        # The order of the database may be that of a language, and not that of Python.
        return sorted(name for (name,) in rows)

    def put_blob(self, name: str, data: bytes) -> None:
        with self._write_transaction() as connection:
            connection.execute(
                "INSERT INTO blobs (name, data, checksum) VALUES (%s, %s, %s) ON CONFLICT (name) "
                "DO UPDATE SET data = excluded.data, checksum = excluded.checksum",
                (name, data, blob_checksum(name, data)),
            )

    def get_blob(self, name: str) -> bytes | None:
        rows = self._select("SELECT data FROM blobs WHERE name = %s", (name,))
        return rows[0][0] if rows else None

    def delete_blob(self, name: str) -> None:
        with self._write_transaction() as connection:
            connection.execute("DELETE FROM blobs WHERE name = %s", (name,))

    def delete_events(self, stream: str, up_to: int) -> None:
        deleted = DELETED_AT_ONCE
        while deleted == DELETED_AT_ONCE:
            with self._write_transaction() as connection:
                # Without the lock an event could be appended meanwhile that follows a deleted one.
                connection.execute(LOCK, ([self._lock("stream", stream)],))
                values = (stream, up_to, DELETED_AT_ONCE)
                deleted = connection.execute(DELETE, values).rowcount
                seal_first(connection, stream)

    def delete_blobs(self, prefix: str) -> None:
        with self._write_transaction() as connection:
            connection.execute("DELETE FROM blobs WHERE left(name, %s) = %s", (len(prefix), prefix))

    def try_lead(self, task: str) -> bool:
        return self._leadership(task, acquire=True)

    def leads(self, task: str) -> bool:
        return self._leadership(task, acquire=False)

    def _leadership(self, task: str, *, acquire: bool) -> bool:
        """Return whether this store leads a task; with ``acquire``, first try to become the leader.

        The leader holds a session lock, which the server releases when the connection ends, and so
        when the process ends. A ``StoreError`` is raised if the connection is lost meanwhile.
        """
        if self._read_only:
            return False
        with self._leader.use() as connection:
            if connection is not self._led[0]:
                self._led = connection, set()
            held = self._led[1]
            if task in held:
                # This statement raises an error if the connection, and with it the lock, was lost.
                connection.execute("SELECT 1")
            elif acquire and first_value(
                connection.execute("SELECT pg_try_advisory_lock(%s)", (self._lock("lead", task),))
            ):
                held.add(task)
            return task in held

    def resign(self, task: str) -> None:
        if not self._leadership(task, acquire=False):
            return
        with self._leader.use() as connection:
            self._led[1].discard(task)
            connection.execute("SELECT pg_advisory_unlock(%s)", (self._lock("lead", task),))

    def backup(self, path: Path) -> None:
        with self._everything() as (events, ends, blobs):
            others = (blob for blob in blobs if not is_segment(blob[0]))
            finish = partial(copy_segments, self, path)
            write_copy(path, self._writer.where, events, ends, others, finish)

    def damage(self) -> Iterator[str]:
        with self._everything() as (events, ends, blobs):
            yield from damaged_events(events, ends)
            yield from damaged_blobs(blobs)

    @contextmanager
    def _everything(
        self,
    ) -> "Iterator[tuple[Iterator[SealedEvent], dict[str, int], Cursor[Any]]]":
        """All events, the ends of streams, and blobs with checksums, as they are at this moment."""
        with (
            closing(self._connection()) as own,
            own.use() as connection,
            connection.transaction(),
        ):
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            ends = connection.execute("SELECT stream, position FROM stream_ends").fetchall()
            # Server-side cursors: not all rows are held in memory at the same time.
            with (
                connection.cursor("events", binary=True) as events,
                connection.cursor("blobs", binary=True) as blobs,
            ):
                events.execute(f"SELECT {SEALED_COLUMNS} FROM events ORDER BY position")
                blobs.execute("SELECT name, data, checksum FROM blobs")
                yield (SealedEvent.of_row(row) for row in events), dict(ends), blobs

    @property
    def place(self) -> str:
        return self._address

    def close(self) -> None:
        self._commits.close()
        self._resign()
        for connection in (self._writer, self._reader, self._leader):
            connection.close()

    def _resign(self) -> None:
        """Release all leadership at once, without waiting until the server closes the session."""
        if self._led[1]:
            with suppress(StoreError), self._leader.use() as connection:
                self._led[1].clear()
                connection.execute("SELECT pg_advisory_unlock_all()")

    def _select(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with self._reader.use() as connection:
            return connection.execute(statement, values, binary=True).fetchall()


def _values(stream: str, entry: Entry) -> dict[str, Any]:
    return {
        "stream": stream,
        "kind": entry.kind,
        "key": entry.key,
        "about": entry.about,
        "body": entry.body,
    }


def _written(row: Any) -> AppendResult:
    new, *columns = row
    return AppendResult(Event(*columns), new=new)
