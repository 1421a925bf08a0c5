"""A store in one file, by SQLite."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import IO, Any

from submax.core.errors import InputError, StoreError
from submax.live.store.copy_file import new_file
from submax.live.store.event import Entry, Event, Written
from submax.live.store.group_commit import Batch, GroupCommit
from submax.live.store.migrations import COLUMNS, SQLITE, STREAMS, Migration, check_known, pending
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
BUSY_SECONDS = 10.0


class SQLiteStore(Store):
    """One writing process, kept alone by a lock on a file; any number that only read.

    Write-ahead log with full sync: an append is durable when its future is done, and appends that
    wait together share one sync. A reader sees what was committed.
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
        self._lock_file: IO[str] | None = None
        self._reading, self._writing = Lock(), Lock()
        with ExitStack() as held:
            if not read_only:
                self._lock_file = held.enter_context(_locked(self.path))
                self._writer = held.enter_context(closing(_connected(self.path, "rwc")))
                _prepare(self._writer, self.path, migrations)
            self._reader = held.enter_context(closing(_connected(self.path, "ro")))
            with _told(self.path):
                check_known(str(self.path), _version(self._reader), len(migrations))
            self._held = held.pop_all()
        self._commits = None if read_only else GroupCommit(self._write)

    def append(self, stream: str, entries: Sequence[Entry]) -> "Future[list[Written]]":
        """By the one thread that writes."""
        if self._commits is None:
            raise StoreError(f"{self.path} was opened to be read only")
        return self._commits.append(stream, entries)

    def _write(self, batches: list[Batch]) -> list[list[Written]]:
        with self._transaction() as connection:
            return [
                [self._insert(connection, batch.stream, entry) for entry in batch.entries]
                for batch in batches
            ]

    def _insert(self, connection: sqlite3.Connection, stream: str, entry: Entry) -> Written:
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
            return Written(Event(*rows[0]), new=True)
        return Written(Event(*connection.execute(FIND, (stream, entry.key)).fetchone()), new=False)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, and durable at the end; one after the other."""
        if self._commits is None:
            raise StoreError(f"{self.path} was opened to be read only")
        with self._writing, _told(self.path):
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
        """By the index on streams and positions."""
        rows = self._select(
            f"SELECT {COLUMNS} FROM events WHERE stream = ? AND position > ? "
            "ORDER BY position LIMIT ?",
            (stream, after, limit),
        )
        return [Event(*row) for row in rows]

    def find(self, stream: str, key: str) -> Event | None:
        """By the index on keys."""
        rows = self._select(FIND, (stream, key))
        return Event(*rows[0]) if rows else None

    def streams(self) -> list[str]:
        """By the index."""
        rows = self._select(STREAMS, ())
        return [name for (name,) in rows]

    def keep(self, name: str, data: bytes) -> None:
        """In a transaction of its own."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO pieces (name, data) VALUES (?, ?)", (name, data)
            )

    def kept(self, name: str) -> bytes | None:
        """Look it up."""
        rows = self._select("SELECT data FROM pieces WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def drop(self, name: str) -> None:
        """Delete."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM pieces WHERE name = ?", (name,))

    def lead(self, name: str, *, take: bool = True) -> bool:
        """Whoever may write."""
        return self._lock_file is not None and not self._lock_file.closed

    def problems(self) -> str:
        """What SQLite finds wrong with the file, nothing where it is whole."""
        found = [str(row[0]) for row in self._select("PRAGMA integrity_check(5)", ())]
        return "" if found == ["ok"] else f"the database file is damaged: {'; '.join(found)[:300]}"

    def backup(self, path: Path) -> None:
        """By SQLite's own means, on a connection of its own."""
        with (
            _told(self.path),
            new_file(path) as partial,
            closing(_connected(self.path, "ro")) as source,
            closing(sqlite3.connect(partial)) as target,
        ):
            source.backup(target)

    def close(self) -> None:
        """Write what is queued, fold the log into the file and give the lock back."""
        if self._commits is not None:
            self._commits.close()
        with self._writing, self._reading:
            self._held.close()

    def _select(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with self._reading, _told(self.path):
            return self._reader.execute(statement, values).fetchall()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say what the database could not do, and what to do about it."""
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
    """A connection without transactions of its own making."""
    place = path.absolute().as_uri()
    if mode == "ro" and not path.exists():
        raise InputError(f"there is no store {str(path)!r}: submax.open makes one")
    with _told(path):
        return sqlite3.connect(
            f"{place}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )


def _prepare(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Full sync, and the newest schema."""
    with _told(path):
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
    """The number of the schema, 0 for an empty database."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "submax_schema" in tables:
        return int(connection.execute("SELECT version FROM submax_schema").fetchone()[0])
    if tables:
        raise InputError(
            f"the database holds other tables ({', '.join(sorted(tables))[:80]}) and is not a "
            "store of submax: give another name"
        )
    return 0


def _locked(path: Path) -> IO[str]:
    """The lock file, held until it is closed or the process ends, whatever ends it."""
    # Beside the file itself, whatever name it was opened by.
    real = path.resolve()
    if not path.name or not real.parent.is_dir():
        raise InputError(f"there is no folder for a store {str(path)!r}: make it first")
    lock = real.with_name(f"{real.name}.lock")
    try:
        file = lock.open("a+")
    except OSError as error:
        raise InputError(f"cannot make a file beside {str(path)!r}: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        holder = file.read().strip() or "another process"
        holder = f"this process, {holder}" if holder == f"process {os.getpid()}" else holder
        file.close()
        raise StoreError(
            f"{path} is open for writing in {holder}: close it there, send requests to its server, "
            "or share a PostgreSQL store among processes"
        ) from error
    file.truncate(0)
    file.write(f"process {os.getpid()}")
    file.flush()
    return file
