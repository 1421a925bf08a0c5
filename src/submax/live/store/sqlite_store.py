"""A store in one SQLite file."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from submax.core.errors import InputError, StoreError
from submax.live.store.copy_file import new_file
from submax.live.store.event import AppendResult, Entry, Event
from submax.live.store.file_lock import FileLock, holder_of
from submax.live.store.group_commit import GroupCommit, QueuedAppend
from submax.live.store.migrations import (
    COLUMNS,
    DELETED_AT_ONCE,
    SQLITE,
    STREAMS,
    Migration,
    check_known,
    pending,
)
from submax.live.store.store import PAGE, Store

INSERT = f"""
INSERT INTO events (stream, at, kind, key, about, about_position, about_at, body)
SELECT :stream, :at, :kind, :key, :about,
       coalesce(max(position), 0), coalesce(max(at), 0.0), :body
FROM events WHERE stream = :stream AND key = :about
ON CONFLICT (stream, key) DO NOTHING
RETURNING {COLUMNS}
"""
FIND = f"SELECT {COLUMNS} FROM events WHERE stream = ? AND key = ?"
DELETE = """
DELETE FROM events WHERE position IN (
    SELECT position FROM events WHERE stream = ? AND position <= ? ORDER BY position LIMIT ?
)
"""
BUSY_SECONDS = 10.0
"""How long a statement waits for a lock of SQLite, which another program may hold for a backup."""


class SQLiteStore(Store):
    """One process writes, and any number of processes read.

    A lock on a file beside the store keeps a second writing process out. SQLite's write-ahead log
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
        self._clock = clock
        self._lock: FileLock | None = None
        self._reading, self._writing = Lock(), Lock()
        with ExitStack() as held:
            if not read_only:
                self._lock = held.enter_context(_locked(self.path))
                self._writer = held.enter_context(closing(_connected(self.path, "rwc")))
                _prepare(self._writer, self.path, migrations)
            self._reader = held.enter_context(closing(_connected(self.path, "ro")))
            with _store_errors(self.path):
                check_known(str(self.path), _version(self._reader), len(migrations))
            self._held = held.pop_all()
        self._commits = None if read_only else GroupCommit(self._write)

    def append(self, stream: str, entries: Sequence[Entry]) -> "Future[list[AppendResult]]":
        if self._commits is None:
            raise self._read_only_error()
        return self._commits.append(stream, entries)

    def _write(self, appends: list[QueuedAppend]) -> list[list[AppendResult]]:
        with self._transaction() as connection:
            return [
                [self._insert(connection, append.stream, entry) for entry in append.entries]
                for append in appends
            ]

    def _insert(self, connection: sqlite3.Connection, stream: str, entry: Entry) -> AppendResult:
        values = {
            "stream": stream,
            "at": self._clock(),
            "kind": entry.kind,
            "key": entry.key,
            "about": entry.about,
            "body": entry.body,
        }
        rows = connection.execute(INSERT, values).fetchall()
        if rows:
            return AppendResult(Event(*rows[0]), new=True)
        return AppendResult(
            Event(*connection.execute(FIND, (stream, entry.key)).fetchone()), new=False
        )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is durable at the end; transactions wait for each other."""
        if self._commits is None:
            raise self._read_only_error()
        with self._writing, _store_errors(self.path):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                # A failed commit may have ended the transaction itself.
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def read(self, stream: str, after: int = 0, limit: int = PAGE) -> list[Event]:
        rows = self._select(
            f"SELECT {COLUMNS} FROM events WHERE stream = ? AND position > ? "
            "ORDER BY position LIMIT ?",
            (stream, after, limit),
        )
        return [Event(*row) for row in rows]

    def find(self, stream: str, key: str) -> Event | None:
        rows = self._select(FIND, (stream, key))
        return Event(*rows[0]) if rows else None

    def streams(self) -> list[str]:
        rows = self._select(STREAMS, ())
        return [name for (name,) in rows]

    def put_blob(self, name: str, data: bytes) -> None:
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO blobs (name, data) VALUES (?, ?)", (name, data)
            )

    def get_blob(self, name: str) -> bytes | None:
        rows = self._select("SELECT data FROM blobs WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def delete_blob(self, name: str) -> None:
        with self._transaction() as connection:
            connection.execute("DELETE FROM blobs WHERE name = ?", (name,))

    def delete_events(self, stream: str, up_to: int) -> None:
        deleted = DELETED_AT_ONCE
        while deleted == DELETED_AT_ONCE:
            with self._transaction() as connection:
                values = (stream, up_to, DELETED_AT_ONCE)
                deleted = connection.execute(DELETE, values).rowcount

    def delete_blobs(self, prefix: str) -> None:
        with self._transaction() as connection:
            connection.execute(
                "DELETE FROM blobs WHERE substr(name, 1, ?) = ?", (len(prefix), prefix)
            )

    def try_lead(self, task: str) -> bool:
        return self.leads(task)

    def leads(self, task: str) -> bool:
        """Whether this process may write: the one process that may leads every task."""
        return self._lock is not None and self._lock.held

    def resign(self, task: str) -> None:
        """Do nothing: no other process can lead while this one has the file open."""

    def problems(self) -> str:
        """What SQLite finds wrong with the file; an empty text if it finds nothing."""
        found = [str(row[0]) for row in self._select("PRAGMA integrity_check(5)", ())]
        return "" if found == ["ok"] else f"the database file is damaged: {'; '.join(found)[:300]}"

    def backup(self, path: Path) -> None:
        with (
            _store_errors(self.path),
            new_file(path) as partial,
            closing(_connected(self.path, "ro")) as source,
            closing(sqlite3.connect(partial)) as target,
        ):
            source.backup(target)

    def close(self) -> None:
        if self._commits is not None:
            self._commits.close()
        with self._writing, self._reading:
            self._held.close()

    def _select(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with self._reading, _store_errors(self.path):
            return self._reader.execute(statement, values).fetchall()

    def _read_only_error(self) -> StoreError:
        return StoreError(
            f"{self.path} was opened only to be read, so that nothing can be written: open it "
            "without read_only"
        )


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as errors of submax that say what to do."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise StoreError(f"{path} is closed: open the bandit again") from error
    except sqlite3.OperationalError as error:
        if "full" in str(error):
            raise StoreError(
                f"{path} cannot grow, since the disk is full: free some space; nothing that was "
                "acknowledged is lost"
            ) from error
        raise StoreError(
            f"{path} cannot be used ({error}): see that its folder can be written, then try again; "
            "nothing that was acknowledged is lost"
        ) from error
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"{path} is not a store of submax, or is damaged ({error}): give another name, or put "
            "a backup in its place"
        ) from error


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that begins no transaction by itself."""
    place = path.absolute().as_uri()
    if mode == "ro" and not path.exists():
        raise InputError(
            f"there is no store {str(path)!r}: check the name, or make it by submax.open"
        )
    with _store_errors(path):
        return sqlite3.connect(
            f"{place}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )


def _prepare(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Turn full sync on, and bring the tables to the newest schema."""
    with _store_errors(path):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        version = _version(connection)
        check_known(str(path), version, len(migrations))
        for number, migration in pending(version, migrations):
            connection.execute("BEGIN IMMEDIATE")
            for statement in migration:
                connection.execute(statement)
            connection.execute("DELETE FROM submax_schema")
            connection.execute("INSERT INTO submax_schema VALUES (?)", (number,))
            connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    """The version number of the schema; 0 for an empty database."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "submax_schema" in tables:
        return int(connection.execute("SELECT version FROM submax_schema").fetchone()[0])
    if tables:
        raise InputError(
            f"the database holds other tables ({', '.join(sorted(tables))[:80]}) and is not a "
            "store of submax: give another name"
        )
    return 0


def _locked(path: Path) -> FileLock:
    """The lock of the store's writing process, in a file beside the store."""
    # Links are resolved, so that one store has one lock, whatever name it was opened by.
    real = path.resolve()
    if not path.name or not real.parent.is_dir():
        raise InputError(f"there is no folder for a store {str(path)!r}: make it first")
    lock_path = real.with_name(f"{real.name}.lock")
    try:
        return FileLock(lock_path)
    except BlockingIOError as error:
        raise StoreError(
            f"{path} is open for writing in {holder_of(lock_path)}: close it there, send requests "
            "to its server, or share a PostgreSQL store among processes"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot make a file beside {str(path)!r} ({error.strerror}): give a folder that can "
            "be written"
        ) from error
