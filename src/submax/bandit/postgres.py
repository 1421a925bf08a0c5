"""A store's tables in PostgreSQL, to which any number of processes may write."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import lru_cache
from threading import BoundedSemaphore, Lock
from typing import Any
from uuid import uuid4

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ConnStatus, TransactionStatus
from psycopg.types.numeric import FloatLoader
from psycopg.types.string import TextBinaryLoader, TextLoader

from submax.bandit.tables import (
    OLD_TABLES,
    POSTGRES_TYPES,
    TABLES,
    Query,
    Statement,
    migrate,
    schema_version,
)
from submax.bandit.writing import Counts, Dialect, Given, Row, Rows, Step, sql_of, write
from submax.core.errors import ConflictError, InputError, StoreError

Session = psycopg.Connection[tuple[Any, ...]]
KEEP_ALIVE = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Parameters of libpq, in seconds, ``tcp_user_timeout`` in milliseconds; ``keepalives_count`` is a
number. By them a server that stops answering without closing the connection is noticed within half
a minute. An address can give other values."""
SESSION = {"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}
"""Settings of every session: the server ends the session of a machine that was lost."""
WRITER = "submax writer"
"""The name of sessions that write, by which the server tells them apart from others."""
WRITING = {
    "application_name": WRITER,
    "lock_timeout": "5s",
    "statement_timeout": "15s",
    "idle_in_transaction_session_timeout": "2s",
    "transaction_timeout": "20s",
}
"""Settings of a session that writes. A transaction is sent as a whole, so the server is idle in it
only if the process was stopped while it sent; then its locks are released, before others give up
waiting for them."""
END_FROZEN = f"""select pg_terminate_backend(pid) from pg_stat_activity
where application_name = '{WRITER}' and datname = current_database() and usename = current_user
    and wait_event = 'ClientRead' and xact_start < now() - interval '2 seconds'"""
"""Ends the sessions of processes that were stopped between two packets of a transaction. Before
version 17 the server has no limit for that: it waits for the rest of a pipeline, with its locks."""
LEADING = {"idle_session_timeout": "120s"}
"""Settings of the session that leads tasks: a process that is stopped leads no longer."""
WRITERS, READERS = 4, 4
"""Transactions that a process may have under way, and queries. One bandit is written by one
transaction at a time, so one that is slow does not hold up the others."""
BATCH = 10_000
"""Rows that a stream reads at once."""
SYNCHRONOUS = """select set_config('synchronous_commit', 'on', false)
where current_setting('synchronous_commit') = 'off'"""
"""Makes commits durable if the database is configured to acknowledge them before they are."""
CONFIGURE = """select set_config(given.name, given.value, false)
from unnest(%s::text[], %s::text[]) as given(name, value) join pg_settings using (name)"""
"""Sets what a session needs, as far as this version of PostgreSQL has such settings."""
UNSETTLED = (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)
"""Transaction states after an error in which it is not known whether the commit took place."""

REALS = ("propensity", "activated", "holdout_share", "control_share", "value", "wait", "quarantine")
WHOLES = ("version", "paused", "assigned_since", "checksum")


def _given(names: list[str]) -> str:
    """All rows, which are one parameter."""
    types = ", ".join(
        f"{each} {'float8' if each in REALS else 'bigint' if each in WHOLES else 'text'}"
        for each in names
    )
    return (
        f"rows from (json_to_recordset(:rows::json) as ({types})) with ordinality "
        f"as given({', '.join(names)}, place)"
    )


def _counted(sql: str, counts: Counts) -> str:
    """A statement that also adds what it returns to columns of ``counts``."""
    sums = ", ".join(
        f"{name} = {name} + (select coalesce(sum({of or 1}), 0) from fresh)" for name, of in counts
    )
    return (
        f"with fresh as ({sql}), counted as (update counts set {sums} "
        "where bandit = :bandit and exists (select from fresh)) select * from fresh"
    )


DIALECT = Dialect(
    "nextval('row_number')",
    "coalesce(:now::float8, extract(epoch from clock_timestamp())::float8)",
    "json",
    _given,
    _counted,
)
LEAD = """select pg_try_advisory_lock(
    ('counts'::regclass::oid::bigint %% 2147483647)::int, hashtext(%s))"""
"""Locks a task. Advisory locks belong to the whole database, in which each schema may have a store,
so the lock has the number of the store's table too."""
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")
NUMBERED = ("bandit", "publication", "audit")
"""Tables whose rows the database numbers."""
SET_NUMBERS = "select setval('row_number', 1 + coalesce((select max(n) from counts), 0))"
SET_IDENTITY = """select setval(
    pg_get_serial_sequence('{table}', 'n'), 1 + coalesce((select max(n) from {table}), 0)
)"""


class PostgresDatabase:
    """The connections to a PostgreSQL database; the methods are those of ``SQLiteDatabase``.

    A transaction that writes is sent as one pipeline from BEGIN to COMMIT, so no process holds a
    lock while it computes or waits. Times are those of the database's clock, unless there is
    another ``clock``. The tables are found by the search path of the connection, and are created in
    its first schema.
    """

    writers = WRITERS

    def __init__(self, address: str, *, read_only: bool, clock: Callable[[], float] | None) -> None:
        self.address, self.read_only, self._clock = address, read_only, clock
        self._parameters = _parsed(address)
        host = self._parameters.get("host") or "the local socket"
        self.where = f"the database {self._parameters.get('dbname')!r} at {host}"
        self._closed = False
        self._writing: list[Session] = []
        self._reading: list[Session] = []
        self._read_slots = BoundedSemaphore(READERS)
        self._leader: Session | None = None
        self._leading = Lock()
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    # Writing

    def transact(self, groups: Mapping[int, Given]) -> dict[tuple[int, str], list[Any]]:
        found: dict[tuple[int, str], list[Any]] = {}
        for bandit, given in groups.items():
            try:
                outcomes = self._write(bandit, given)
            except StoreError as error:
                locked = isinstance(error.__cause__, psycopg.errors.LockNotAvailable)
                if not locked or not self._ended_frozen():
                    raise
                outcomes = self._write(bandit, given)
            found |= {(bandit, kind): rows for kind, rows in outcomes.items()}
        return found

    def _ended_frozen(self) -> bool:
        """Whether a process that was stopped held a lock, which it now holds no longer."""
        with self._reader() as session:
            return bool(session.execute(END_FROZEN).fetchall())

    def _write(self, bandit: int, given: Given) -> dict[str, list[Any]]:
        def run(step: Step, rows: Sequence[Row] = (), **more: Any) -> Rows:
            sql, values, _ = self.statement(step, bandit, **more)
            if step.given:
                columns = [{name: row[name] for name in step.given.split()} for row in rows]
                values = {**values, "rows": msgspec.json.encode(columns).decode()}
            return session.execute(with_percent(sql), values).fetchall

        with self._writer() as session:
            with session.pipeline():
                session.execute("begin")
                outcomes = write(run, bandit, given, self.select)
                session.execute("commit")
            return {kind: outcome() for kind, outcome in outcomes.items()}

    def statement(self, step: Step, bandit: int, **values: Any) -> Statement:
        now = None if self._clock is None else self._clock()
        return Statement(sql_of(step, DIALECT), {"bandit": bandit, "now": now, **values})

    def execute(self, statements: Sequence[Statement]) -> list[tuple[int, list[Any]]]:
        with self._writer() as session:
            try:
                with session.pipeline():
                    session.execute("begin", prepare=False)
                    # Not prepared: after one that fails, the server has not seen those behind it.
                    cursors = [
                        session.execute(_translated(each), _values(each.values), prepare=False)
                        for each in statements
                    ]
                    session.execute("commit", prepare=False)
            except psycopg.errors.DivisionByZero as error:
                raise ConflictError("a row was changed in the meantime: read it again") from error
            return [_answer(*each) for each in zip(statements, cursors, strict=True)]

    # Reading

    def select(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        with self._reader() as session:
            return session.execute(with_percent(sql), _values(values)).fetchall()

    @contextmanager
    def snapshot(self, *, lenient: bool = False) -> Iterator[Query]:
        def query(sql: str, values: Mapping[str, Any]) -> Iterator[list[Any]]:
            # A cursor of the server: not all rows are held in memory at the same time.
            with session.cursor(uuid4().hex, binary=True) as cursor:
                cursor.execute(with_percent(sql), _values(values))
                while rows := cursor.fetchmany(BATCH):
                    yield rows

        with self._reader() as session:
            session.execute("begin isolation level repeatable read")
            try:
                yield query
            finally:
                with suppress(psycopg.Error):
                    session.execute("rollback")

    def damage(self) -> Iterator[str]:
        """PostgreSQL checks its pages itself, when it reads them."""
        return iter(())

    def load(self, tables: Iterable[tuple[str, str, Iterable[list[Any]]]]) -> None:
        # A session of its own: this takes longer than a transaction that others wait for may.
        with (
            closing(self._connected(SESSION)) as session,
            self._errors(session),
            session.transaction(),
        ):
            session.execute("delete from setting")
            for table, columns, batches in tables:
                with session.cursor().copy(f"copy {table} ({columns}) from stdin") as copy:
                    for rows in batches:
                        for row in rows:
                            copy.write_row(row)
            session.execute(SET_NUMBERS)
            for table in NUMBERED:
                session.execute(SET_IDENTITY.format(table=table))

    def lead(self, task: str) -> bool:
        """Take a lock of the session, which ends with the connection, and so with the process."""
        if self.read_only:
            return False
        with self._leading, self._errors():
            if self._leader is None or _is_lost(self._leader):
                self._leader = self._connected({**SESSION, **LEADING})
            row = self._leader.execute(LEAD, (task,)).fetchone()
            return row is not None and bool(row[0])

    # Connections

    def close(self) -> None:
        self._closed = True
        for sessions in (self._writing, self._reading):
            while sessions:
                sessions.pop().close()
        with self._leading:
            if self._leader is not None:
                self._leader.close()

    def _writer(self) -> AbstractContextManager[Session]:
        return self._session(self._writing, {**SESSION, **WRITING})

    @contextmanager
    def _reader(self) -> Iterator[Session]:
        settings = {**SESSION, "default_transaction_read_only": "on"}
        with self._read_slots, self._session(self._reading, settings) as session:
            yield session

    @contextmanager
    def _session(self, idle: list[Session], settings: Mapping[str, str]) -> Iterator[Session]:
        """Yield a connection to this thread alone, with no transaction begun."""
        if self._closed:
            raise StoreError(f"{self.where} is closed: open the bandit again")
        session = None
        with suppress(IndexError):
            while _is_lost(session := idle.pop()):
                session.close()
        if session is None or session.closed:
            session = self._connected(settings)
        try:
            with self._errors(session):
                yield session
        finally:
            if session.info.transaction_status == TransactionStatus.INERROR:
                with suppress(psycopg.Error):
                    session.execute("rollback")
            if self._closed or session.info.transaction_status != TransactionStatus.IDLE:
                session.close()
            else:
                idle.append(session)

    def _connected(self, settings: Mapping[str, str]) -> Session:
        try:
            session = Session.connect(**self._parameters, autocommit=True)
            try:
                session.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                session.adapters.register_loader("json", TextLoader)
                session.adapters.register_loader("json", TextBinaryLoader)
                session.adapters.register_loader("numeric", FloatLoader)
                session.execute(SYNCHRONOUS)
                session.execute(CONFIGURE, ([*settings], [*settings.values()]))
            except BaseException:
                session.close()
                raise
        except psycopg.Error as error:
            raise StoreError(
                f"{self.where} cannot be reached ({_first_line(error)}): check that the "
                "server runs and that the URL is right, then try again"
            ) from error
        return session

    @contextmanager
    def _errors(self, session: Session | None = None) -> Iterator[None]:
        """Raise errors of psycopg as errors of submax that say what to do."""
        try:
            yield
        except (
            psycopg.DataError,
            psycopg.IntegrityError,
            psycopg.errors.ProgramLimitExceeded,
            UnicodeEncodeError,
        ) as error:
            raise InputError(
                f"{self.where} cannot store a value ({_first_line(error)}): nothing was "
                "written; change the value"
            ) from error
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
            raise StoreError(
                f"{self.where} is busy ({_first_line(error)}): nothing was written; try again"
            ) from error
        except psycopg.Error as error:
            if session is None or session.closed or session.info.transaction_status in UNSETTLED:
                raise StoreError(
                    f"the connection to {self.where} was lost ({_first_line(error)}): try again "
                    "with the same ids; nothing that was acknowledged is lost"
                ) from error
            raise StoreError(
                f"{self.where} refused this ({_first_line(error)}): nothing was written; correct "
                "the cause and try again"
            ) from error

    # The schema

    def _prepare(self) -> None:
        """Create the tables, or lead them to the newest schema, one process at a time."""

        def run(sql: str, values: Mapping[str, Any]) -> list[Any]:
            cursor = session.execute(with_percent(sql), values)
            return cursor.fetchall() if cursor.description else []

        known = (
            "select name from unnest(:tables::text[]) as name where to_regclass(name) is not null"
        )
        with self._reader() if self.read_only else self._writer() as session, session.transaction():
            if not self.read_only:
                session.execute("select pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
            tables = {name for (name,) in run(known, {"tables": [*TABLES, *OLD_TABLES]})}
            version = schema_version(run, tables, self.where)
            if not self.read_only:
                migrate(run, version, POSTGRES_TYPES)
            elif not version:
                raise InputError(
                    f"{self.where} is not a submax store: check the URL, or create a store with "
                    "submax.open"
                )


SCHEMA_LOCK = 0x7375626D6178
"""The advisory lock of a process that changes the schema."""


def _is_lost(session: Session) -> bool:
    """Whether a connection was closed since its last use."""
    # The end is noticed by reading, after what the server sent before it.
    with suppress(psycopg.OperationalError):
        for _ in range(3):
            session.pgconn.consume_input()
        return session.pgconn.status != ConnStatus.OK
    return True


@lru_cache(1024)
def with_percent(sql: str) -> str:
    """SQL with ``:name`` parameters in the style of psycopg.

    >>> with_percent("select n::text from unit where unit like '%' and n = :n")
    "select n::text from unit where unit like '%%' and n = %(n)s"
    """
    return PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))


def _translated(statement: Statement) -> str:
    """SQL of psycopg; a required statement that changes no row fails by a division by 0."""
    sql = with_percent(statement.sql)
    if not statement.required:
        return sql
    return f"with changed as ({sql} returning 1) select count(*), 1 / count(*) from changed"


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a statement: PostgreSQL has no whole numbers that are true or false."""
    return {name: int(each) if isinstance(each, bool) else each for name, each in values.items()}


def _answer(statement: Statement, cursor: Any) -> tuple[int, list[Any]]:
    rows = cursor.fetchall() if cursor.description else []
    return (rows[0][0], []) if statement.required else (cursor.rowcount, rows)


def _parsed(address: str) -> dict[str, Any]:
    """The parameters in an address; errors do not repeat it, because it may hold a password."""
    try:
        given = conninfo_to_dict(address)
    except (psycopg.ProgrammingError, UnicodeDecodeError):
        given = {}
    # If a password has an unescaped special character such as "@" or "/", what follows it is read
    # as the port or as the database name.
    port, database = str(given.get("port", 0)), str(given.get("dbname", ""))
    if not given or "@" in database or not port.replace(",", "").isdigit():
        raise StoreError(
            "the URL of the store is not valid: write "
            "postgresql://user:password@host:port/database, with / @ : ? # % and "
            "spaces in its parts as %2F %40 %3A %3F %23 %25 %20"
        ) from None
    return {**KEEP_ALIVE, **given}


def _first_line(error: BaseException) -> str:
    message = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return (message or str(error).strip() or type(error).__name__).splitlines()[0]
