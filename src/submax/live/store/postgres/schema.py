"""The tables of a store in PostgreSQL."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from submax.core.errors import InputError
from submax.live.store.migrations import Migration, check_known, pending
from submax.live.store.postgres.statements import LOCK, first_value, lock_number

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection


def check_there(connection: "Connection[Any]", where: str, migrations: Sequence[Migration]) -> None:
    """Raise an ``InputError`` if the database is not a store, or if its schema is newer."""
    version = _version(connection, where)
    if version == 0:
        raise InputError(
            f"{where} holds no store of submax: check the address, or make a store by submax.open"
        )
    check_known(where, version, migrations)


def prepare(connection: "Connection[Any]", where: str, migrations: Sequence[Migration]) -> None:
    """Create the tables, or run the migrations to the newest schema, one process at a time."""
    connection.execute(LOCK, ([lock_number("submax schema")],))
    version = _version(connection, where)
    check_known(where, version, migrations)
    for number, migration in pending(version, migrations):
        for statement in migration:
            connection.execute(statement)
        connection.execute("DELETE FROM submax_schema")
        connection.execute("INSERT INTO submax_schema VALUES (%s)", (number,))


def _version(connection: "Connection[Any]", where: str) -> int:
    """Return the version number of the schema; 0 if the database has no tables of submax."""
    ours, events = connection.execute(
        "SELECT to_regclass('submax_schema'), to_regclass('events')"
    ).fetchone() or (None, None)
    if ours is not None:
        return int(first_value(connection.execute("SELECT max(version) FROM submax_schema")))
    if events is not None:
        raise InputError(
            f"{where} holds a table 'events' that is not of submax: give another database, or "
            "another schema by ?options=-csearch_path%3Dname"
        )
    return 0
