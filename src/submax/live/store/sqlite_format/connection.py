"""Connections to a SQLite file, whose errors are raised as errors of submax."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from submax.core.errors import InputError, StoreError

BUSY_SECONDS = 10.0
"""How long a statement waits for a lock of SQLite, which another program may hold for a backup."""


def connected(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that begins no transaction by itself; ``mode`` is that of SQLite's URI."""
    place = path.absolute().as_uri()
    if mode != "rwc" and not path.exists():
        raise InputError(
            f"there is no store {str(path)!r}: check the name, or make it by submax.open"
        )
    with store_errors(path):
        return sqlite3.connect(
            f"{place}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as errors of submax that say what to do."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise StoreError(f"{path} is closed: open the bandit again") from error
    except sqlite3.OperationalError as error:
        if "decode" in str(error):
            raise _damaged(path, error) from error
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
        raise _damaged(path, error) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that is committed at the end of the block, or undone if the block fails."""
    try:
        # Inside, because a signal may interrupt the program when the transaction has just begun.
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A failed commit may have ended the transaction itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _damaged(path: Path, error: sqlite3.Error) -> InputError:
    return InputError(
        f"{path} is not a store of submax, or is damaged ({error}): give another name, or put "
        "a backup in its place"
    )
