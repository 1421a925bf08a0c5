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
"""Parameters of libpq, in seconds, ``tcp_user_timeout`` in milliseconds; ``keepalives_count`` is a
number. By them a server that stops answering without closing the connection is noticed within half
a minute. An attempt to connect that began during an outage ends soon, so that the next one finds
the server again. An address can give other values."""
UNSETTLED = (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)
"""Transaction states after an error in which it is not known whether the commit took place."""
FULL_SYNC = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') = 'off'
"""
"""Makes commits of this session durable, if the database is configured to acknowledge commits that
are not durable yet. Any other setting is left as it is."""


class PostgresConnection:
    """A connection that opens at its first use, and opens again after it was lost.

    One thread uses the connection at a time, and the others wait. If the connection is lost during
    a statement, the statement fails and is not repeated here, because it is unknown whether the
    commit took place. The caller can append the same entries again: those with a key are not
    written twice.

    ``where`` names the database and the host in error messages, without the password.
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
        """Yield the open connection to this thread alone, with no transaction begun.

        An error of psycopg in the block is raised as an ``InputError`` if the database cannot hold
        a value, else as a ``StoreError``; other errors are not changed. A ``StoreError`` is also
        raised if the database cannot be reached, or after ``close``.
        """
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
        """Wait until no thread uses the connection, then close it; it does not open again."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _open_connection(self) -> "psycopg.Connection[Any]":
        if self._closed:
            raise StoreError(f"{self.where} is closed: open the bandit again")
        if self._connection is None or _closed_by_server(self._connection):
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
        """Return the error of submax that an error in the block of ``use`` is raised as.

        An error that is not about the database is returned as it is.
        """
        if isinstance(
            error, psycopg.DataError | psycopg.errors.ProgramLimitExceeded | UnicodeEncodeError
        ):
            return InputError(
                f"{self.where} cannot hold a value ({_first_line(error)}): change it, since "
                "nothing was written"
            )
        if not isinstance(error, psycopg.Error):
            return error
        # psycopg does not always close a connection that was lost during a statement.
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
    """Return the parameters in an address, or raise a ``StoreError`` if it cannot be read.

    The error does not repeat the address, because it may hold a password.
    """
    try:
        given = conninfo_to_dict(address)
    except (psycopg.ProgrammingError, UnicodeDecodeError):
        given = {}
    # If a password has an unescaped special character such as "@" or "/", what follows it is read
    # as the port or as the database name.
    port, database = str(given.get("port", 0)), str(given.get("dbname", ""))
    if not given or "@" in database or not port.replace(",", "").isdigit():
        raise StoreError(
            "the address of the store cannot be read: write "
            "postgresql://user:password@host:port/database, with / @ : ? # % and spaces in its "
            "parts as %2F %40 %3A %3F %23 %25 %20"
        ) from None
    return {**TIMEOUTS, **given}


def _set_up(connection: "psycopg.Connection[Any]") -> "psycopg.Connection[Any]":
    """Make commits durable, and let each statement see all that was committed before it began.

    A writer waits for the lock of a stream, and must then see what the earlier holder committed.
    """
    try:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.execute(FULL_SYNC)
    except BaseException:
        connection.close()
        raise
    return connection


def _closed_by_server(connection: "psycopg.Connection[Any]") -> bool:
    """Whether the server has closed the connection since its last use."""
    # The end of a connection is noticed by reading, after all data that the server sent before it.
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
