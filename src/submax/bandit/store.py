"""The durable store: group commit over the tables, for SQLite and PostgreSQL."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import Condition, RLock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from submax.bandit.sqlite import MEMORY, SQLiteDatabase
from submax.bandit.tables import (
    TABLES,
    Activated,
    DecisionRow,
    RewardRow,
    Statement,
    UnitRow,
    Written,
    WrittenReward,
    damage,
    decision_content,
    write_setting,
)
from submax.bandit.writing import AFTER_TICK, LOCK, NOW
from submax.core.errors import InputError, StoreError
from submax.core.optional import SPANS, require_extra

if TYPE_CHECKING:
    from submax.bandit.postgres import PostgresDatabase

WRITE_TIMEOUT_SECONDS = 30.0
"""How long a caller waits for a write to become durable before it gets an error."""
PROBE_BYTES = 8192
"""Half of the characters of the value by which ``check_writable`` tries to write."""
DELETED_AT_ONCE = 10_000
"""The most decisions that are deleted in one transaction."""
MAX_ROWS = 4096
"""About as many rows are written in one transaction, so no caller waits for a very long one."""
__all__ = ["MEMORY", "Store", "copy_store", "new_file", "open_store", "result_of"]
POSTGRES = ("postgresql://", "postgres://")
"""How the address of a store in PostgreSQL begins."""
EXECUTE = "execute"
"""The kind of a call whose rows are statements; it has a transaction of its own."""
Answer = TypeVar("Answer")
Statements = Sequence[Statement | tuple[str, Mapping[str, Any]]]


class Call(NamedTuple):
    """One call that waits: the rows of a kind that it writes, and its future."""

    lane: int
    bandit: int
    kind: str
    rows: Sequence[Any]
    done: "Future[Any]"


class GroupCommit:
    """Threads that write what all callers wait for.

    While one transaction commits, further calls wait in a queue, and the next transaction writes
    all of them. So the cost of a commit is shared. Calls of one lane are written in order, by one
    thread at a time; a lane that waits for a lock does not hold up the others.
    """

    def __init__(self, database: "SQLiteDatabase | PostgresDatabase") -> None:
        self._database = database
        self._waiting: deque[Call] = deque()
        self._busy: set[int] = set()
        # Callers take the lock itself: an interrupt inside of a method of Condition would keep it.
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._threads: list[Thread] = []
        self._idle, self._closed = 0, False
        self._process = os.getpid()

    def put(self, call: Call) -> "Future[Any]":
        """Queue a call. Its future is done after the commit, or has the error."""
        self.check_process()
        # A running future cannot be cancelled by a caller that gives up: the thread will set it.
        call.done.set_running_or_notify_cancel()
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed: open the bandit again")
            # One step, so an interrupt leaves nothing half done.
            self._waiting.append(call)
            if self._idle == 0 and len(self._threads) < self._database.writers:
                thread = Thread(target=self._run, name="submax-writer", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        return call.done

    def check_process(self) -> None:
        """Refuse a forked process: the threads and the connections belong to its parent."""
        if os.getpid() != self._process:
            raise StoreError(
                "this process was forked after the store was opened, and a store works only in the "
                "process that opened it: open it in each process"
            )

    def close(self) -> None:
        """Write all queued calls, then end the threads; a second call does nothing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (calls := self._next()):
                    if self._closed and not self._waiting:
                        self._changed.notify_all()
                        return
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                self._busy.add(calls[0].lane)
            self._commit(calls)
            with self._changed:
                self._busy.remove(calls[0].lane)
                self._changed.notify()

    def _next(self) -> list[Call]:
        """Take the next calls of a lane that no thread writes; they share a transaction.

        A call to execute statements shares it with no other.
        """
        taken, left, rows, full = list[Call](), deque[Call](), 0, False
        for call in self._waiting:
            mine = call.lane == taken[0].lane if taken else call.lane not in self._busy
            if mine and taken and not full:
                alone = EXECUTE in (call.kind, taken[0].kind)
                full = alone or rows + len(call.rows) > MAX_ROWS
            if mine and not full:
                taken.append(call)
                rows += len(call.rows)
            else:
                left.append(call)
        self._waiting = left
        return taken

    def _commit(self, calls: list[Call]) -> None:
        try:
            with SPANS.span("submax.store.write", appends=len(calls)):
                answers = self._written(calls)
        except BaseException as error:
            # If one call has a value that the store cannot hold, each is written in a transaction
            # of its own, so only the bad one fails. After a StoreError nothing is repeated
            # here: it concerns all calls, and the transaction may have been committed.
            if len(calls) > 1 and not isinstance(error, StoreError):
                for call in calls:
                    self._commit([call])
                return
            for call in calls:
                call.done.set_exception(error)
            return
        for call, answer in zip(calls, answers, strict=True):
            call.done.set_result(answer)

    def _written(self, calls: list[Call]) -> list[Any]:
        if calls[0].kind == EXECUTE:
            return [self._database.execute(calls[0].rows)]
        groups: dict[int, dict[str, list[Any]]] = {}
        parts = []
        for call in calls:
            rows = groups.setdefault(call.bandit, {}).setdefault(call.kind, [])
            parts.append(slice(len(rows), len(rows) + len(call.rows)))
            rows.extend(call.rows)
        outcomes = self._database.transact(groups)
        return [
            outcomes[call.bandit, call.kind][part] for call, part in zip(calls, parts, strict=True)
        ]


class Store:
    """Decisions, rewards and all else of bandits in the tables of a database.

    A write is durable when its future is done. SQL has ``:name`` parameters. All methods may be
    called from any thread. ``where`` is the path, or the database and host without a password;
    ``address`` is what ``open_store`` takes, for another process, and may have a password.
    """

    def __init__(self, database: "SQLiteDatabase | PostgresDatabase") -> None:
        self._database = database
        self._commits = GroupCommit(database)
        self.where, self.address = database.where, database.address
        self.read_only = database.read_only

    def write_decisions(self, bandit: int, rows: Sequence[DecisionRow]) -> "Future[list[Written]]":
        """Write decisions; one whose id is stored already is answered with the stored row."""
        for row in rows:
            row.checksum = decision_content(bandit, row)
        return self._put(bandit, "decisions", rows)

    def write_rewards(
        self,
        bandit: int,
        rows: Sequence[RewardRow],
        longest_wait: float,
        quarantine: float = 3600.0,
    ) -> "Future[list[WrittenReward]]":
        """Write rewards; each id and key at most once.

        A reward is late if it comes ``longest_wait`` seconds or more after its decision. One of an
        unknown decision waits ``quarantine`` seconds for it.
        """
        return self._put(bandit, "rewards", [(row, longest_wait, quarantine) for row in rows])

    def activate(
        self, bandit: int, ids: Sequence[str], longest_wait: float
    ) -> "Future[list[Activated]]":
        """Mark decisions as carried out, unless ``longest_wait`` is over."""
        return self._put(bandit, "activations", [(each, longest_wait) for each in ids])

    def pin_units(self, bandit: int, rows: Sequence[UnitRow]) -> "Future[list[UnitRow]]":
        """Pin units, unless they are pinned in that period; the stored pins decide."""
        return self._put(bandit, "pins", rows)

    def execute(self, statements: Statements) -> list[tuple[int, list[Any]]]:
        """Run statements in one durable transaction: all of them, or none.

        Return how many rows each changed, and what it returned. If a ``required`` one changes no
        row, a ``ConflictError`` is raised.
        """
        return result_of(self._put(0, EXECUTE, [Statement(*each) for each in statements]))

    def select(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        self._commits.check_process()
        return self._database.select(sql, values)

    def stream(self, *queries: str, **values: Any) -> Generator[list[tuple[Any, ...]], None, None]:
        """The rows of queries as of this moment, in lists; memory does not grow with the rows."""
        self._commits.check_process()
        with self._database.snapshot() as rows:
            for sql in queries:
                yield from rows(sql, values)

    def now(self, bandit: int) -> float:
        """The time that a row of a bandit would have that is written now.

        It never falls: if the clock was set back, it goes on at half of the clock's speed until
        the clock has caught up.
        """
        sql, values, _ = self._database.statement(NOW, bandit)
        return float(self.select(sql, **values)[0][0])

    def tick(self, bandit: int) -> float:
        """A time after which all further rows of a bandit are written: those up to it are final."""
        steps = [self._database.statement(step, bandit) for step in (LOCK, AFTER_TICK)]
        return float(self.execute(steps)[1][1][0][0])

    def lead(self, task: str) -> bool:
        """Become the leader of a task if no other process leads it; whether this one does now."""
        self._commits.check_process()
        return self._database.lead(task)

    def delete_decisions(self, bandit: int, where: str, **values: Any) -> int:
        """Delete decisions of a bandit and their rewards; return how many decisions.

        ``where`` is a condition in SQL on the columns of ``decision``, such as ``at < :before``.
        Many are deleted in several transactions, so other writers do not wait long.
        """
        values["bandit"] = bandit
        chosen = f"select n from decision where bandit = :bandit and ({where})"
        deleted = 0
        while True:
            first = f"select n from ({chosen} order by n limit {DELETED_AT_ONCE}) as first"
            ((count, last),) = self.select(f"select count(*), max(n) from ({first}) as n", **values)
            if count == 0:
                return deleted
            values["last"] = last
            those = f"{chosen} and n <= :last"
            statements = [
                # Holds up writers to the bandit, so what is counted is what is deleted.
                "update counts set n = n where bandit = :bandit",
                f"""update counts set
                deleted_decisions = deleted_decisions + (select count(*) from ({those}) as those),
                deleted_rewards = deleted_rewards
                    + (select count(*) from reward where decision in ({those}))
                where bandit = :bandit""",
                f"delete from reward where decision in ({those})",
                f"delete from decision where n in ({those})",
            ]
            deleted += self.execute([(sql, values) for sql in statements])[-1][0]

    def check_writable(self) -> None:
        """Write something durably; a ``StoreError`` if the store cannot write now."""
        # As much as a decision may need, and different from the last one.
        write_setting(
            lambda sql, values: self.execute([(sql, values)]),
            "probe",
            os.urandom(PROBE_BYTES).hex(),
        )

    def damage(self) -> Iterator[str]:
        """Look at all decisions and rewards, and yield a sentence for everything damaged."""
        self._commits.check_process()
        try:
            yield from self._database.damage()
            with self._database.snapshot(lenient=True) as rows:
                yield from damage(rows)
        except InputError as error:
            yield str(error)

    def backup(self, path: Path) -> None:
        """Copy everything that is committed into a new SQLite file; others may go on writing.

        The copy is searched for damage, and gets its name only if there is none.
        """
        self._commits.check_process()
        with new_file(Path(path)) as partial:
            if isinstance(self._database, SQLiteDatabase):
                self._database.backup(partial)
            else:
                with open_store(partial) as target:
                    _copy(self, target)
            with open_store(partial, read_only=True) as copy:
                _check_copy(self, copy)

    def close(self) -> None:
        """Write what is queued and release all resources; a second call does nothing."""
        self._commits.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, bandit: int, kind: str, rows: Sequence[Any]) -> "Future[Any]":
        if self.read_only:
            raise StoreError(f"{self.where} was opened read-only: open it without read_only")
        # With one writer, the calls of all bandits share a transaction.
        lane = bandit if self._database.writers > 1 else 0
        return self._commits.put(Call(lane, bandit, kind, rows, Future()))


def result_of(future: "Future[Answer]", seconds: float = WRITE_TIMEOUT_SECONDS) -> Answer:
    """Wait until a write is durable; a ``StoreError`` if that takes too long."""
    try:
        return future.result(seconds)
    except FutureTimeoutError as error:
        if future.done():
            raise
        raise StoreError(
            f"the store did not answer within {seconds:.0f} seconds: try again with the same id"
        ) from error


def open_store(
    path_or_url: str | Path,
    *,
    read_only: bool = False,
    clock: Callable[[], float] | None = None,
) -> Store:
    """Open a store in a SQLite file or, by a ``postgresql://`` address, in PostgreSQL.

    ``":memory:"`` is a store that is deleted when it is closed. Without a ``clock``, times are
    those of the machine or of the database.
    """
    if str(path_or_url).startswith(("http://", "https://")):
        raise InputError(
            f"{path_or_url} is the URL of a server, not of a store: on the server's machine, give "
            "the file of its store or the URL of the database"
        )
    if not str(path_or_url).startswith(POSTGRES):
        return Store(SQLiteDatabase(path_or_url, read_only=read_only, clock=clock))
    require_extra("postgres", "a store in PostgreSQL", "psycopg")
    from submax.bandit.postgres import PostgresDatabase

    return Store(PostgresDatabase(str(path_or_url), read_only=read_only, clock=clock))


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which is renamed to ``path`` at the end of the block.

    If the block raises an error, the temporary file is deleted, and there is no file at ``path``.
    """
    if path.exists():
        raise InputError(f"{str(path)!r} already exists: give another name")
    if not path.parent.is_dir():
        raise InputError(f"the folder {str(path.parent)!r} does not exist: create it first")
    partial = path.with_name(f"{path.name}.partial")
    beside = [partial, *(partial.with_name(f"{partial.name}{end}") for end in ("-wal", "-shm"))]
    for file in beside:
        file.unlink(missing_ok=True)
    try:
        yield partial
        partial.replace(path)
    finally:
        for file in beside:
            file.unlink(missing_ok=True)


def copy_store(source: str | Path, target: str | Path) -> dict[str, int]:
    """Copy a store, as from SQLite to PostgreSQL, into a new one; the rows of each table.

    The new store is searched for damage.
    """
    with open_store(source, read_only=True) as old, open_store(target) as new:
        if new.select("select count(*) from bandit") != [(0,)]:
            raise InputError(f"{new.where} is not empty: give the name of a new store")
        _copy(old, new)
        _check_copy(old, new)
        return {table: new.select(f"select count(*) from {table}")[0][0] for table in TABLES}


def _copy(source: Store, target: Store) -> None:
    with source._database.snapshot() as rows:
        target._database.load(
            (table, columns, rows(f"select {columns} from {table} order by 1", {}))
            for table, columns in TABLES.items()
        )


def _check_copy(source: Store, copy: Store) -> None:
    if found := list(islice(copy.damage(), 3)):
        raise StoreError(
            f"the copy of {source.where} is damaged ({'; '.join(found)}), so do not use it: run "
            "submax doctor on the store; if it finds nothing, check the disk of the copy"
        )
