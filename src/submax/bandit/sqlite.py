"""A store's tables in one SQLite file: one process writes, any number of processes read."""

import math
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from submax.bandit.tables import (
    SQLITE_TYPES,
    Query,
    Statement,
    migrate,
    schema_version,
    write_setting,
)
from submax.bandit.writing import Dialect, Given, Row, Rows, Step, sql_of, write
from submax.core.errors import ConflictError, InputError, StoreError

BUSY_SECONDS = 10.0
"""How long a statement waits for a lock of SQLite, which another program may hold for a backup."""
PAGE_BYTES = 8192
"""Rows of a few hundred bytes fill larger pages better. An existing file keeps its own."""
MEMORY = ":memory:"
"""The path of a store in a folder that is deleted when the store is closed."""
PATH_KEY = "path"
"""The name in the table ``setting`` of the path under which the file was last written."""
BATCH = 2500
"""Rows that a stream reads at once: with more, they leave the processor's cache."""
DIALECT = Dialect(
    "next_number()",
    ":now",
    "text",
    # One row, whose values are parameters.
    lambda names: (
        f"(select {', '.join(f':{each} as {each}' for each in names)}, 0 as place) as given"
    ),
)


class SQLiteDatabase:
    """The connections to a SQLite file. One thread writes; any thread may read.

    The write-ahead log is synced at every commit. Before a transaction counts as durable, the file
    and its log must still be those that were opened: somebody may have deleted or renamed them.
    """

    writers = 1

    def __init__(
        self, path: Path | str, *, read_only: bool, clock: Callable[[], float] | None
    ) -> None:
        self.where, self.read_only = str(path), read_only
        self._clock, self._closed = clock or time.time, False
        self._readers: list[sqlite3.Connection] = []
        self._files: dict[Path, tuple[int, int] | None] = {}
        with ExitStack() as opened:
            if str(path) == MEMORY:
                folder = opened.enter_context(TemporaryDirectory(prefix="submax-"))
                path = Path(folder) / "store.db"
            # SQLite too resolves symbolic links before it names its log.
            self.path = Path(path).resolve()
            self.address = str(self.path)
            if self.path.is_dir():
                raise InputError(f"{self.where} is a folder: give the name of a store's file")
            opened.enter_context(file_in_use(self.path, writing=not read_only))
            if not read_only:
                self._writer = opened.enter_context(closing(connected(self.path, "rw")))
                with store_errors(self.path):
                    self._prepare()
                files = (self.path, Path(f"{self.path}-wal"))
                self._files = {file: _identity(file) for file in files}
            reader = opened.enter_context(closing(connected(self.path, "ro")))
            with store_errors(self.path):
                if not self._schema_version(reader) and read_only:
                    raise InputError(
                        f"{self.where} is empty and not a store: check the name, or restore a "
                        "backup"
                    )
            self._readers.append(reader)
            self._opened = opened.pop_all()

    # Writing

    def transact(self, groups: Mapping[int, Given]) -> dict[tuple[int, str], list[Any]]:
        """Write to each bandit in one durable transaction; the outcomes by bandit and kind."""
        with self._transaction():
            outcomes = {
                (bandit, kind): outcome
                for bandit, given in groups.items()
                for kind, outcome in write(
                    partial(self._run, bandit), bandit, given, self.select
                ).items()
            }
        return {key: outcome() for key, outcome in outcomes.items()}

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
                for name, of in step.counts
            }
            sets = ", ".join(f"{name} = {name} + :{name}" for name in added)
            execute(f"update counts set {sets} where bandit = :bandit", {**values, **added})
        return lambda: found

    def statement(self, step: Step, bandit: int, **values: Any) -> Statement:
        """The statement of a step for a bandit."""
        return Statement(sql_of(step, DIALECT), {"bandit": bandit, "now": self._clock(), **values})

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
        with store_errors(self.path):
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

    def _check_files(self) -> None:
        for file, identity in self._files.items():
            if _identity(file) != identity:
                raise StoreError(
                    f"{file} was deleted, renamed or replaced while the store was open, so "
                    "nothing more is written: put it back, or close the store and open it again"
                )

    def load(self, tables: Iterable[tuple[str, str, Iterable[list[Any]]]]) -> None:
        """Write rows, given by table, columns and lists of rows, in one transaction."""
        with self._transaction():
            self._writer.execute("delete from setting")
            for table, columns, batches in tables:
                marks = ", ".join("?" * len(columns.split(",")))
                sql = f"insert into {table} ({columns}) values ({marks})"
                for rows in batches:
                    self._writer.executemany(sql, rows)
            self._read_number()

    def _read_number(self) -> None:
        """Read the last number that was used; numbers of a transaction that failed are left out."""
        ((last,),) = self._writer.execute("select coalesce(max(n), 0) from counts")
        self._writer.create_function("next_number", 0, count(last + 1).__next__)

    # Reading

    def select(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        with self._reader() as connection:
            return connection.execute(sql, values).fetchall()

    @contextmanager
    def snapshot(self, *, lenient: bool = False) -> Iterator[Query]:
        """Yield a function that reads the rows of queries, all as of the same moment.

        ``lenient``: text that is no UTF-8, as of a damaged row, is read too.
        """

        def query(sql: str, values: Mapping[str, Any]) -> Iterator[list[Any]]:
            with closing(connection.execute(sql, values)) as cursor:
                while rows := cursor.fetchmany(BATCH):
                    yield rows

        with self._reader() as connection:
            connection.execute("begin")
            if lenient:
                connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            try:
                yield query
            finally:
                connection.text_factory = str
                connection.execute("rollback")

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        if self._closed:
            raise StoreError(f"{self.path} is closed: open the bandit again")
        with store_errors(self.path):
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

    def damage(self) -> Iterator[str]:
        """What SQLite finds wrong with its pages and indexes."""
        found = [str(row[0]) for row in self.select("pragma integrity_check(5)", {})]
        if found != ["ok"]:
            yield f"the database file is damaged: {'; '.join(found)[:300]}"

    def backup(self, path: Path) -> None:
        """Copy everything that is committed into a file."""
        private_file(path)
        with self._reader() as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)

    def close(self) -> None:
        """Close all connections and release the lock."""
        self._closed = True
        while self._readers:
            self._readers.pop().close()
        self._opened.close()

    # The schema

    def _prepare(self) -> None:
        def run(sql: str, values: Mapping[str, Any]) -> list[Any]:
            return self._writer.execute(sql, values).fetchall()

        version = self._schema_version(self._writer)
        if version:
            self._check_other_name()
        for pragma in (f"page_size = {PAGE_BYTES}", "journal_mode = wal", "synchronous = full"):
            run(f"pragma {pragma}", {})
        with self._transaction():
            # Always a write: the log must exist, so its identity is known.
            migrate(run, version, SQLITE_TYPES)
            write_setting(run, PATH_KEY, str(self.path))
        run("pragma wal_checkpoint", {})
        self._read_number()

    def _check_other_name(self) -> None:
        """Refuse a store that was killed under another name: SQLite names its log after the file.

        A copy of the file has its own log, so the other file must be gone or be the same one.
        """
        sql = "select value from setting where name = ?"
        last = (self._writer.execute(sql, (PATH_KEY,)).fetchone() or [str(self.path)])[0]
        other, log = Path(last), Path(f"{last}-wal")
        is_this = not other.exists() or other.samefile(self.path)
        if last != str(self.path) and is_this and log.exists() and log.stat().st_size > 0:
            raise StoreError(
                f"{self.path} was last written under the name {other}, and its newest data are in "
                f"{log}: open it as {other}, and always use that name"
            )

    def _schema_version(self, connection: sqlite3.Connection) -> int:
        found = connection.execute("select name from sqlite_master where type = 'table'")
        tables = {name for (name,) in found if not name.startswith("sqlite_")}
        ((page,),), log = connection.execute("pragma page_size"), Path(f"{self.path}-wal")
        size = self.path.stat().st_size
        # SQLite finds missing pages, but no missing part of a page. A log may still complete it.
        if size % page and not (log.exists() and log.stat().st_size):
            raise InputError(
                f"{self.path} was truncated to {size} bytes, and its other decisions and rewards "
                "are lost: restore a backup"
            ) from sqlite3.DatabaseError("the file is too short")
        return schema_version(
            lambda sql, values: connection.execute(sql, values).fetchall(), tables, self.where
        )


def _floor(number: float | None) -> float | None:
    return None if number is None else float(math.floor(number))


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def connected(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that begins no transaction by itself; ``mode`` is that of SQLite's URI."""
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


# The lock of the one process that writes


class FileInUse:
    """A file that databases of this process have open."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self.users, self.writing = 0, False


IN_USE: dict[tuple[int, int], FileInUse] = {}
"""The files that this process has open, by their identity."""
USING = Lock()
LOCKED_BYTE = 2**40
"""The offset of the byte that is locked on Windows: behind all bytes that SQLite reads or locks."""


@contextmanager
def file_in_use(path: Path, *, writing: bool) -> Iterator[None]:
    """Keep a file open; if it is for ``writing``, keep other writers out, by whatever name.

    The lock is on the file itself, so it holds for hard links and after a rename too. It is not one
    of the locks by which SQLite shares the file. POSIX drops those when a process closes any
    descriptor of the file, so this process has one descriptor for all, and closes it last.
    """
    with USING:
        if writing:
            private_file(path)
        identity = _identity(path)
        if identity is None:
            raise InputError(
                f"there is no store {str(path)!r}: check the name, or create it with "
                "submax.open or submax create"
            )
        try:
            file = IN_USE.get(identity) or FileInUse(path)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be read ({error.strerror}): give the file of a store that you may "
                "read"
            ) from error
        IN_USE[identity] = file
        file.users += 1
    taken = False
    try:
        if writing:
            with USING:
                holder = "this process" if file.writing else "another process"
                taken = not file.writing and _lock(file.descriptor)
                file.writing |= taken
            if not taken:
                raise StoreError(
                    f"{path} is open for writing in {holder}: close it there, give the URL of "
                    "its server instead, or use a PostgreSQL store"
                )
        yield
    finally:
        with USING:
            file.users -= 1
            if taken:
                file.writing = not _lock(file.descriptor, release=True)
            if not file.users:
                os.close(IN_USE.pop(identity).descriptor)


def _lock(descriptor: int, *, release: bool = False) -> bool:
    """Lock an open file or release it; each system has its own call, imported only there."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK if release else msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_UN if release else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def private_file(path: Path) -> None:
    """Create a file that only its owner can read, unless it exists."""
    if path.exists():
        return
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise InputError(
            f"cannot create the file {str(path)!r} ({error.strerror}): give the name of a file in "
            "an existing, writable folder"
        ) from error


class store_errors:  # noqa: N801 - used as a function; a generator would cost more
    """Raise errors of SQLite as errors of submax that say what to do."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if not isinstance(error, sqlite3.Error | OverflowError | UnicodeError):
            return
        path, name = self._path, getattr(error, "sqlite_errorname", "")
        damaged = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ")
        if name == "SQLITE_FULL":
            raise StoreError(
                f"{path} cannot grow because the disk is full: free some space; nothing that was "
                "acknowledged is lost"
            ) from error
        if isinstance(error, UnicodeDecodeError) or name.startswith(damaged):
            raise InputError(
                f"{path} is not a submax store, or is damaged or truncated ({error}): give another "
                "name, or restore a backup; submax.Bandit.load reads a saved bandit"
            ) from error
        if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
            raise StoreError(f"{path} is closed: open the bandit again") from error
        if isinstance(error, sqlite3.OperationalError) and name != "SQLITE_ERROR":
            raise StoreError(
                f"{path} cannot be used ({error}): check that its folder is writable, then try "
                "again"
            ) from error
        raise InputError(
            f"{path} cannot store or look up a value ({error}): nothing was changed"
        ) from error
