"""The tables of a store in SQLite."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from submax.core.errors import InputError
from submax.live.store.migrations import Migration, check_known, pending
from submax.live.store.sqlite_format.connection import store_errors


def prepare(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Turn full sync on, and bring the tables to the newest schema."""
    with store_errors(path):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        version = schema_version(connection)
        check_known(str(path), version, migrations)
        for number, migration in pending(version, migrations):
            connection.execute("BEGIN IMMEDIATE")
            for statement in migration:
                connection.execute(statement)
            connection.execute("DELETE FROM submax_schema")
            connection.execute("INSERT INTO submax_schema VALUES (?)", (number,))
            connection.execute("COMMIT")


def schema_version(connection: sqlite3.Connection) -> int:
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
