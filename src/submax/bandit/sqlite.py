"""A store's tables in one SQLite file: one process writes, any number of processes read."""

import math
import os
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import IO, Any, Self
from uuid import uuid4

from submax.bandit.tables import (
    SCHEMA_KEY,
    SCHEMA_VERSION,
    SQLITE_TYPES,
    STORE_KEY,
    Query,
    Statement,
    Writes,
    check_version,
    migrations,
)
from submax.bandit.writing import Dialect, Row, Rows, Step, rendered, write
from submax.core.errors import ConflictError, InputError, StoreError

BUSY_SECONDS = 10.0
"""How long a statement waits for a lock of SQLite, which another program may hold for a backup."""
PAGE_BYTES = 8192
BATCH = 10_000
"""Rows that a stream reads at once."""


def _given(columns: Mapping[str, str]) -> str:
    """One row, whose values are parameters."""
    return f"(select {', '.join(f':{name} as {name}' for name in columns)}, 0 as place) as given"


DIALECT = Dialect("next_number()", ":now", "text", _given)


class SQLiteDatabase:
    """The connections to a SQLite file. One thread writes; any thread may read.

    The write-ahead log is synced at every commit. Before a transaction counts as durable, the file
    and its log must still be those that were opened: somebody may have deleted or renamed them.
    """

    writers = 1

    def __init__(
        self, path: Path | str, *, read_only: bool, clock: Callable[[], float] | None
    ) -> None:
        self.path, self.read_only = Path(path), read_only
        self.where, self.address = str(path), str(self.path.absolute())
        self._clock = clock or time.time
        self._closed = False
        self._readers: list[sqlite3.Connection] = []
        self._rendered: dict[str, str] = {}
        self._n = 0
        with ExitStack() as opened:
            if not read_only:
                opened.enter_context(WriterLock(self.path))
            opened.enter_context(opened_here(self.path))
            if not read_only:
                self._writer = opened.enter_context(closing(connected(self.path, "rw")))
                self._writer.create_function("next_number", 0, self._next_number)
                with self.errors():
                    self._prepare()
                    self._read_number()
                self._files = {file: _identity(file) for file in self._paths()}
            reader = opened.enter_context(closing(connected(self.path, "ro")))
            with self.errors():
                self._check_schema(reader)
            self._readers.append(reader)
            self._identity = _identity(self.path)
            self._opened = opened.pop_all()

    def is_there(self) -> bool:
        """Whether the file at the path is still the one that was opened."""
        return _identity(self.path) == self._identity

    def lane(self, bandit: int) -> int:
        """All writes share a transaction."""
        return 0

    # Writing

    def transact(self, groups: Sequence[Writes]) -> None:
        """Write all groups in one durable transaction and set their outcomes, or write nothing."""
        with self._transaction():
            finish = [
                write(partial(self._run, group.bandit), group, self.select) for group in groups
            ]
        for each in finish:
            each()

    def _run(self, bandit: int, step: Step, rows: Sequence[Row] = (), **more: Any) -> Rows:
        """Execute a step, for each of the rows; see ``writing.Run``."""
        execute = self._writer.execute
        found: list[tuple[Any, ...]] = []
        sql, values, _ = self.statement(step, bandit, **more)
        if not step.only_if or execute(step.only_if, values).fetchone():
            for row in rows if step.given else ({},):
                found += execute(sql, {**values, **row}).fetchall()
        if found and step.counts:
            added = {
                name: sum(1 if of is None else row[step.returning.index(of)] for row in found)
                for name, of in step.counts.items()
            }
            sets = ", ".join(f"{name} = {name} + :{name}" for name in added)
            execute(f"update counts set {sets} where bandit = :bandit", {**values, **added})
        return lambda: found

    def statement(self, step: Step, bandit: int, **values: Any) -> Statement:
        """A step for a bandit, as a statement."""
        sql = self._rendered.get(step.sql)
        if sql is None:
            sql = self._rendered[step.sql] = rendered(step, DIALECT)
        return Statement(sql, {"bandit": bandit, "now": self._clock(), **values})

    def execute(self, statements: Sequence[Statement]) -> list[tuple[int, list[Any]]]:
        """Run statements in one durable transaction: how many rows each changed, and returned."""
        answers = []
        with self._transaction():
            for sql, values, required in statements:
                cursor = self._writer.execute(sql, values)
                rows = cursor.fetchall()
                if required and cursor.rowcount < 1:
                    raise ConflictError("a row was changed in the meantime: read it again")
                answers.append((cursor.rowcount, rows))
        return answers

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self.errors():
            self._check_files()
            try:
                self._writer.execute("begin immediate")
                yield
                self._writer.execute("commit")
            except BaseException:
                # A failed commit may have ended the transaction itself.
                if self._writer.in_transaction:
                    self._writer.execute("rollback")
                raise
            self._check_files()

    def _next_number(self) -> int:
        self._n += 1
        return self._n

    def _read_number(self) -> None:
        """Read the last number that was used; numbers of a transaction that failed are left out."""
        (self._n,) = self._writer.execute("select coalesce(max(n), 0) from counts").fetchone()

    # Reading

    def select(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        """All rows of a query."""
        with self._reader() as connection:
            return connection.execute(sql, values).fetchall()

    @contextmanager
    def snapshot(self, *, lenient: bool = False) -> Iterator[Query]:
        """Yield a function that reads the rows of queries, all as of the same moment.

        ``lenient``: text that is no UTF-8, as of a damaged row, is read too.
        """
        with self._reader() as connection:
            connection.execute("begin")
            if lenient:
                connection.text_factory = _lenient_text
            try:
                yield lambda sql, values: _batches(connection, sql, values)
            finally:
                connection.text_factory = str
                connection.execute("rollback")

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        if self._closed:
            raise StoreError(f"{self.path} is closed: open the bandit again")
        with self.errors():
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = connected(self.path, "ro")
            try:
                yield connection
            finally:
                self._readers.append(connection)
                if self._closed:
                    self.close()

    def lead(self, task: str) -> bool:
        """Whether this process may write: the one process that may leads every task."""
        return not self.read_only

    def resign(self, task: str) -> None:
        """Do nothing: no other process can lead while this one has the file open."""

    def damage(self) -> Iterator[str]:
        """What SQLite finds wrong with its pages and indexes."""
        found = [str(row[0]) for row in self.select("pragma integrity_check(5)", {})]
        if found != ["ok"]:
            yield f"the database file is damaged: {'; '.join(found)[:300]}"

    def backup(self, path: Path) -> None:
        """Copy everything that is committed into a file."""
        with self._reader() as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)

    def load(self, tables: Iterable[tuple[str, str, Iterable[list[Any]]]]) -> None:
        """Write rows, given by table, columns and lists of rows, in one transaction."""
        with self._transaction():
            for table, columns, batches in tables:
                marks = ", ".join("?" * len(columns.split(",")))
                sql = f"insert or replace into {table} ({columns}) values ({marks})"
                for rows in batches:
                    self._writer.executemany(sql, rows)
            self._read_number()

    def close(self) -> None:
        """Close all connections and release the lock."""
        self._closed = True
        while self._readers:
            self._readers.pop().close()
        self._opened.close()

    # The file

    def _prepare(self) -> None:
        connection = self._writer
        version = self._check_schema(connection)
        # Rows of a few hundred bytes fill larger pages better. An existing file keeps its own.
        connection.execute(f"pragma page_size = {PAGE_BYTES}")
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute("begin immediate")
        try:
            for statement in migrations(version, SQLITE_TYPES):
                connection.execute(statement)
            if version == 0:
                connection.execute("insert into setting values (?, ?)", (STORE_KEY, uuid4().hex))
            # Always a write: the log must exist, so that its identity is known.
            connection.execute(
                "insert or replace into setting values (?, ?)", (SCHEMA_KEY, str(SCHEMA_VERSION))
            )
            connection.execute("commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise

    def _check_schema(self, connection: sqlite3.Connection) -> int:
        """The schema version of the file, 0 if it is new and may be written."""
        found = connection.execute("select name from sqlite_master where type = 'table'")
        tables = {name for (name,) in found if not name.startswith("sqlite_")}
        version = None
        if "setting" in tables:
            row = connection.execute(
                "select value from setting where name = ?", (SCHEMA_KEY,)
            ).fetchone()
            version = int(row[0]) if row else None
        check_version(self.where, tables, version)
        if version is None and self.read_only:
            raise InputError(
                f"{self.where} is empty and no store of submax: check the name, or put a backup in "
                "its place"
            )
        return version or 0

    def _paths(self) -> tuple[Path, Path]:
        return self.path, Path(f"{self.path}-wal")

    def _check_files(self) -> None:
        for file, identity in self._files.items():
            if _identity(file) != identity:
                raise StoreError(
                    f"{file} was deleted, renamed or replaced while the store was open, so "
                    "nothing more is written: put it back, or close the store and open it again"
                )

    def errors(self) -> "store_errors":
        """Raise errors of SQLite as errors of submax."""
        return store_errors(self.path)


def _batches(
    connection: sqlite3.Connection, sql: str, values: Mapping[str, Any]
) -> Iterator[list[Any]]:
    with closing(connection.execute(sql, values)) as cursor:
        while rows := cursor.fetchmany(BATCH):
            yield rows


def _floor(number: float | None) -> float | None:
    return None if number is None else float(math.floor(number))


def _lenient_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def connected(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that begins no transaction by itself; ``mode`` is that of SQLite's URI."""
    if not path.exists():
        raise InputError(
            f"there is no store {str(path)!r}: check the name, or make it by submax.open"
        )
    with store_errors(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("select floor(0.5)")
        except sqlite3.OperationalError:
            # SQLite was built without functions of mathematics.
            connection.create_function("floor", 1, _floor, deterministic=True)
        return connection


OPENED: Counter[tuple[int, int]] = Counter()
"""How many databases of this process have a file open, by its identity."""
OPENING = Lock()


@contextmanager
def opened_here(path: Path) -> Iterator[None]:
    """Note that this process has a file open; check its length first if it had not.

    POSIX drops all locks that a process has on a file when it closes any descriptor of it. While
    SQLite has the file open, it must not be opened and closed besides: another process that closes
    its last connection would delete the log into which this one writes.
    """
    with OPENING:
        identity = _identity(path)
        if identity is not None and not OPENED[identity]:
            check_length(path)
        if identity is not None:
            OPENED[identity] += 1
    try:
        yield
    finally:
        if identity is not None:
            with OPENING:
                OPENED[identity] -= 1


def check_length(path: Path) -> None:
    """Refuse a file that ends before its last page, unless a log may still complete it."""
    log = Path(f"{path}-wal")
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read ({error.strerror}): give the file of a store, and see that you "
            "may read it"
        ) from error
    if not header.startswith(b"SQLite format 3\0") or (log.exists() and log.stat().st_size > 0):
        return
    page = int.from_bytes(header[16:18])
    expected = int.from_bytes(header[28:32]) * (65536 if page == 1 else page)
    # The number of pages is valid if the last writer knew of it.
    if header[24:28] == header[92:96] and path.stat().st_size < expected:
        raise InputError(
            f"{path} was cut off: {path.stat().st_size} of {expected} bytes are there, and the "
            "rest of its decisions and rewards is lost: put a backup in its place"
        ) from sqlite3.DatabaseError("the file is too short")


class store_errors:  # noqa: N801 - used as a function; a generator would cost more
    """Raise errors of SQLite as errors of submax that say what to do."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, sqlite3.Error | OverflowError | UnicodeEncodeError):
            raise _store_error(self._path, error) from error


def _store_error(path: Path, error: Exception) -> InputError | StoreError:
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL":
        return StoreError(
            f"{path} cannot grow, since the disk is full: free some space; nothing that was "
            "acknowledged is lost"
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ")):
        return InputError(
            f"{path} is not a store of submax, or is damaged ({error}): give another name, or put "
            "a backup in its place"
        )
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return StoreError(f"{path} is closed: open the bandit again")
    if isinstance(error, sqlite3.OperationalError) and name != "SQLITE_ERROR":
        return StoreError(
            f"{path} cannot be used ({error}): see that its folder can be written, then try again"
        )
    return InputError(f"{path} cannot hold or find a value ({error}): nothing was changed")


LOCKED_BYTE = 2**30
"""The offset of the byte that is locked on Windows, where a locked byte cannot be read by others:
far behind the name of the holder, which others read."""


class FileLock:
    """An exclusive lock on a file, in which the holder writes its name and a note.

    ``note_before`` is the note of the last holder. The operating system releases the lock when the
    file is closed or the process ends, however it ends. A ``temporary`` file is removed then.
    """

    def __init__(self, path: Path, note: str = "", *, temporary: bool = False) -> None:
        """Take the lock; ``BlockingIOError`` if it is held, by a process or in this one."""
        self._path, self._temporary = path, temporary
        self._file = _locked(path)
        while temporary and not _is_at(self._file, path):
            # The last holder has removed the file after it was opened here.
            self._file.close()
            self._file = _locked(path)
        self._file.seek(0)
        self.note_before = self._file.read().partition("\n")[2]
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()}" + (f"\n{note}" if note else ""))
        self._file.flush()

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._temporary and not self._file.closed:
            # Windows does not remove a file that is open; an old file does no harm.
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class WriterLock:
    """Keeps a second writing process out, whatever name it opens the file by.

    There are two locks. One is on a file beside the store: it keeps out other machines that share
    the folder. The other is on a temporary file that is named after the store's inode: it keeps
    out processes of the same user that open the same file by a hard link, or after it was renamed.
    The store's own file is not locked: SQLite locks it, and would lose its locks whenever this
    process closed the file.
    """

    def __init__(self, path: Path) -> None:
        """Take both locks, and create the store's file if there is none."""
        # Symbolic links are resolved, so that one store has one lock beside it.
        real = path.resolve()
        if not path.name or not real.parent.is_dir():
            raise InputError(f"there is no folder for a store {str(path)!r}: make it first")
        with ExitStack() as taken:
            taken.enter_context(_taken(path, real.with_name(f"{real.name}.lock")))
            private_file(real)
            folder = _own_folder()
            if folder is not None:
                found = real.stat()
                file = folder / f"{found.st_dev:x}-{found.st_ino:x}.lock"
                by_inode = taken.enter_context(_taken(path, file, str(real)))
                _check_other_name(real, by_inode.note_before)
            self._taken = taken.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._taken.close()


def private_file(path: Path) -> None:
    """Create a file that only its owner can read, unless it exists."""
    if not path.exists():
        # An existing file is not opened: closing it would drop the locks that SQLite has on it.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _taken(path: Path, file: Path, note: str = "") -> FileLock:
    try:
        return FileLock(file, note, temporary=bool(note))
    except BlockingIOError as error:
        holder = file.read_text(encoding="utf-8").partition("\n")[0].strip() or "another process"
        if holder == f"process {os.getpid()}":
            holder = f"this process, {holder}"
        raise StoreError(
            f"{path} is open for writing in {holder}: close it there, give a command the address "
            "of its server instead, or share a PostgreSQL store among processes"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot make a file beside {str(path)!r} ({error.strerror}): give a folder that can "
            "be written"
        ) from error


def _own_folder() -> Path | None:
    """A folder for temporary files that only this user can write to; None if it cannot be had."""
    # On Windows every file has the owner 0, and every user has a folder for temporary files.
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"submax-locks-{user}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        # Do not use a directory owned by another user: it may contain malicious symlinks.
        if not folder.is_symlink() and folder.stat().st_uid == user:
            return folder
    return None


def _check_other_name(real: Path, before: str) -> None:
    """Refuse a store that was killed under another name: SQLite names its log after the file."""
    other, log = Path(before), Path(f"{before}-wal")
    if not before or other == real or not other.exists() or not log.exists():
        return
    if other.samefile(real) and log.stat().st_size > 0:
        raise StoreError(
            f"{real} was last written as {other}, and the end of its data is in {log}: open it as "
            f"{other}, and use one name only"
        )


def _locked(path: Path) -> IO[str]:
    private_file(path)
    file = path.open("a+", encoding="utf-8")
    try:
        _lock(file)
    except BaseException:
        file.close()
        raise
    return file


def _is_at(file: IO[str], path: Path) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _lock(file: IO[str]) -> None:
    """Lock an open file; each system has its own call, imported only there."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(LOCKED_BYTE)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(str(error)) from error
        finally:
            file.seek(0)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
