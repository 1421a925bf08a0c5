"""One connection to PostgreSQL, and its errors in words."""

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
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""A server that vanishes without a word is noticed within half a minute."""
UNSETTLED = (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)
FULL_SYNC = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') = 'off'
"""


class PostgresConnection:
    """Made when it is first used, one use at a time, and made anew after it was lost.

    What was under way when it was lost fails, and is never tried again here: whether a commit
    came through cannot be known, and the caller can repeat it by its keys.
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
        """Outside any transaction, alone; errors are told as those of a store."""
        with self._lock:
            connection = self._living()
            try:
                yield connection
            except BaseException as error:
                told = self._told(error, connection)
                if connection.info.transaction_status != TransactionStatus.IDLE:
                    connection.close()
                if told is error:
                    raise
                raise told from error

    def close(self) -> None:
        """Wait for the use under way, then let go for good."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _living(self) -> "psycopg.Connection[Any]":
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

    def _told(self, error: BaseException, connection: "psycopg.Connection[Any]") -> BaseException:
        """Say what the database could not do, and what to do about it."""
        if isinstance(
            error, psycopg.DataError | psycopg.errors.ProgramLimitExceeded | UnicodeEncodeError
        ):
            return InputError(
                f"{self.where} cannot hold a value ({_first_line(error)}): change it, since "
                "nothing was written"
            )
        if not isinstance(error, psycopg.Error):
            return error
        # Also where psycopg noticed the loss in the middle of something, and has not closed it yet:
        # whether a commit came through is not known.
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
    """The parts of an address; a wrong one is not repeated, since it may hold a password."""
    try:
        given = conninfo_to_dict(address)
    except (psycopg.ProgrammingError, UnicodeDecodeError):
        given = {}
    # An unescaped sign in a password ends up in the port or in the name of the database.
    port, database = str(given.get("port", 0)), str(given.get("dbname", ""))
    if not given or "@" in database or not port.replace(",", "").isdigit():
        raise StoreError(
            "the address of the store cannot be read: write "
            "postgresql://user:password@host:port/database, with / @ : ? # % and spaces in its "
            "parts as %2F %40 %3A %3F %23 %25 %20"
        ) from None
    return {**TIMEOUTS, **given}


def _set_up(connection: "psycopg.Connection[Any]") -> "psycopg.Connection[Any]":
    """Commits that are durable, and statements that see what they have waited for."""
    try:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.execute(FULL_SYNC)
    except BaseException:
        connection.close()
        raise
    return connection


def _hung_up(connection: "psycopg.Connection[Any]") -> bool:
    """Whether the server has ended the connection while it was not used."""
    poll = select.poll()
    # The end of a connection can be read, behind what was said before it.
    with suppress(psycopg.OperationalError):
        poll.register(connection.fileno(), select.POLLIN)
        while poll.poll(0):
            connection.pgconn.consume_input()
    return connection.closed


def _first_line(error: BaseException) -> str:
    told = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return (told or str(error).strip() or type(error).__name__).splitlines()[0]
