"""One connection to PostgreSQL, whose errors are raised as errors of submax."""

import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from submax.core.errors import InputError, StoreError

TIMEOUTS = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Seconds (``tcp_user_timeout``: milliseconds): a server that stops answering without closing the
connection is noticed within half a minute. An attempt to connect that began during an outage ends
soon, so that the next one finds the server again; an address can give a longer time."""
UNSETTLED = (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)
"""Transaction states in which it is not known whether a commit came through."""
FULL_SYNC = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') = 'off'
"""
"""A database may be configured to acknowledge commits before they are durable: not for us."""


class PostgresConnection:
    """A connection that opens at its first use, and opens again after it was lost.

    One thread uses it at a time. A statement that was under way when the connection was lost fails
    and is not repeated here, because it is unknown whether the commit came through. The caller can
    repeat it with the same keys.
    """

    def __init__(self, address: str) -> None:
        self._parameters = _parsed(address)
        host = self._parameters.get("host") or "the local socket"
        self.where = f"the database {self._parameters.get('dbname')!r} at {host}"
        self._connection: psycopg.Connection[Any] | None = None
        self._closed = False
        self._lock = Lock()

    @contextmanager
    def use(self) -> Iterator["psycopg.Connection[Any]"]:
        """The connection for one thread, outside transactions; errors become those of a store."""
        with self._lock:
            connection = self._open_connection()
            try:
                yield connection
            except BaseException as error:
                converted = self._store_error(error, connection)
                if connection.info.transaction_status != TransactionStatus.IDLE:
                    connection.close()
                if converted is error:
                    raise
                raise converted from error

    def close(self) -> None:
        """Wait for the thread that uses the connection, then close it for good."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _open_connection(self) -> "psycopg.Connection[Any]":
        if self._closed:
            raise StoreError(f"{self.where} is closed: open the bandit again")
        if self._connection is None or _hung_up(self._connection):
            if self._connection is not None:
                self._connection.close()
            self._connection = self._connected()
        return self._connection

    def _connected(self) -> "psycopg.Connection[Any]":
        try:
            return _set_up(psycopg.connect(**self._parameters, autocommit=True))
        except psycopg.Error as error:
            raise StoreError(
                f"{self.where} cannot be reached ({_first_line(error)}): see that the server runs "
                "and that the address is right, then try again"
            ) from error

    def _store_error(
        self, error: BaseException, connection: "psycopg.Connection[Any]"
    ) -> BaseException:
        """An error of submax that says what the database could not do, and what to do."""
        if isinstance(
            error, psycopg.DataError | psycopg.errors.ProgramLimitExceeded | UnicodeEncodeError
        ):
            return InputError(
                f"{self.where} cannot hold a value ({_first_line(error)}): change it, since "
                "nothing was written"
            )
        if not isinstance(error, psycopg.Error):
            return error
        # psycopg may have noticed the loss during a statement and not have closed the connection.
        if connection.closed or connection.info.transaction_status in UNSETTLED:
            return StoreError(
                f"the connection to {self.where} was lost ({_first_line(error)}): try again with "
                "the same keys; nothing that was acknowledged is lost"
            )
        return StoreError(
            f"{self.where} cannot do this ({_first_line(error)}): nothing was written; try again "
            "when it can"
        )


def _parsed(address: str) -> dict[str, Any]:
    """The parts of an address; an error does not repeat it, because it may hold a password."""
    try:
        given = conninfo_to_dict(address)
    except (psycopg.ProgrammingError, UnicodeDecodeError):
        given = {}
    # If a password has an unescaped sign, its rest is read as the port or the database name.
    port, database = str(given.get("port", 0)), str(given.get("dbname", ""))
    if not given or "@" in database or not port.replace(",", "").isdigit():
        raise StoreError(
            "the address of the store cannot be read: write "
            "postgresql://user:password@host:port/database, with / @ : ? # % and spaces in its "
            "parts as %2F %40 %3A %3F %23 %25 %20"
        ) from None
    return {**TIMEOUTS, **given}


def _set_up(connection: "psycopg.Connection[Any]") -> "psycopg.Connection[Any]":
    """Make commits durable, and let a statement see what was committed while it waited."""
    try:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.execute(FULL_SYNC)
    except BaseException:
        connection.close()
        raise
    return connection


def _hung_up(connection: "psycopg.Connection[Any]") -> bool:
    """Whether the server has ended the connection since its last use."""
    # The end of a connection is read like data, after everything that the server sent before.
    with suppress(psycopg.OperationalError):
        while _readable(connection.fileno()):
            connection.pgconn.consume_input()
    return connection.closed


def _readable(socket: int) -> bool:
    """Whether a read from a socket would return now."""
    if not hasattr(select, "poll"):  # On Windows.
        return bool(select.select([socket], [], [], 0)[0])
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))


def _first_line(error: BaseException) -> str:
    message = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return (message or str(error).strip() or type(error).__name__).splitlines()[0]
