"""What all stores have in common."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from random import Random
from typing import NamedTuple
from uuid import UUID

import msgspec
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises_code

from submax.core.errors import InputError
from submax.live.store.event import Entry
from submax.live.store.memory_store import MemoryStore
from submax.live.store.migrations import POSTGRES, SQLITE, newest
from submax.live.store.postgres_store import PostgresStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.testing import check_store


def test_the_store_in_memory_keeps_its_contract():
    store = MemoryStore()
    check_store(lambda: store, forgets=True)


class Database(NamedTuple):
    """A database that outlives the store that is opened in it."""

    opened: Callable
    connected: Callable
    migrations: tuple
    wrong_keys: dict[str, type[Exception]]

    def execute(self, statement):
        with closing(self.connected()) as connection, connection:
            return connection.execute(statement)

    def select(self, statement):
        with closing(self.connected()) as connection:
            return connection.execute(statement).fetchall()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgresql"))])
def database(request, tmp_path):
    if request.param == "sqlite":
        path, wrong = tmp_path / "store.db", {"\ud800": ValueError, "k" * 70_000: InputError}
        return Database(partial(SQLiteStore, path), partial(sqlite3.connect, path), SQLITE, wrong)
    address = request.getfixturevalue("postgres_address")
    # The last one is too long for an index, and cannot be compressed.
    wrong = dict.fromkeys(("\0", "\ud800", Random(0).randbytes(5000).hex()), InputError)
    opened, connected = partial(PostgresStore, address), partial(psycopg.connect, address)
    return Database(opened, connected, POSTGRES, wrong)


def append(store, *keys):
    return store.append("s", [Entry("kind", b"", key) for key in keys])


def keys(store):
    return [event.key for event in store.read("s")]


def test_a_store_in_a_database_keeps_its_contract(database):
    check_store(database.opened)


@pytest.mark.parametrize("read_only", [False, True])
def test_tables_of_somebody_else_are_left_alone(database, read_only):
    database.execute("CREATE TABLE events (name TEXT)")
    with raises_code("invalid-input"):
        database.opened(read_only=read_only)
    assert database.select("SELECT name FROM events") == []
    with pytest.raises((sqlite3.Error, psycopg.Error)):
        database.select("SELECT version FROM submax_schema")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("version", [3, 7])
def test_an_unknown_schema_is_refused(database, read_only, version):
    database.opened().close()
    database.execute(f"UPDATE submax_schema SET version = {version}")
    with raises_code("invalid-input"):
        database.opened(read_only=read_only)


NEXT = ("CREATE TABLE more (value TEXT)", "ALTER TABLE events ADD COLUMN extra TEXT")
BROKEN = ("CREATE TABLE more (value TEXT)", "INSERT INTO nowhere VALUES (1)")


def test_a_migration_reaches_the_newest_schema_or_changes_nothing(database):
    with closing(database.opened()) as store:
        append(store, "before")
    with raises_code("store-unavailable"):
        database.opened(migrations=(*database.migrations, BROKEN))
    with pytest.raises((sqlite3.Error, psycopg.Error)):
        database.select("SELECT value FROM more")
    with closing(database.opened()) as store:
        assert keys(store) == ["before"]
    with closing(database.opened(migrations=(*database.migrations, NEXT))) as store:
        append(store, "after").result()
        assert keys(store) == ["before", "after"]
    version = newest(database.migrations) + 1
    assert database.select("SELECT version FROM submax_schema") == [(version,)]
    assert database.select("SELECT extra FROM events") == [(None,)] * 2


def test_a_value_that_cannot_be_held_fails_alone(database):
    with closing(database.opened()) as store:
        right = ["first", *map(str, range(len(database.wrong_keys)))]
        appends = [append(store, "with first", "first")]
        for number, (wrong, error) in enumerate(database.wrong_keys.items()):
            failing = append(store, f"with wrong {number}", wrong)
            appends.append(append(store, f"with {number}", str(number)))
            with pytest.raises(error):
                failing.result()
        assert [len(one.result()) for one in appends] == [2] * len(right)
        assert keys(store) == [key for one in right for key in (f"with {one}", one)]


UUIDS = st.uuids().map(str)
DECISION = f"d {UUID(int=7)}"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
KEYS = st.one_of(
    st.none(),
    TEXTS,
    st.builds("{} {}{}".format, st.sampled_from("dr🦆"), UUIDS, TEXTS),
    st.builds("d {}".format, UUIDS.map(str.upper)),
)
ENTRIES = st.builds(
    Entry,
    st.sampled_from(["decision", "reward", "activation", "tick", "declared"]) | TEXTS,
    st.binary(max_size=60),
    KEYS,
    st.sampled_from([None, DECISION, "d visit-1"]),
)


@settings(max_examples=100 if "SUBMAX_SOAK" in os.environ else 15)
@given(st.lists(ENTRIES, max_size=20))
def test_events_of_a_file_are_read_as_they_were_appended(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("store") / "page.db"
    with closing(SQLiteStore(path)) as store:
        written = store.append("s", [Entry("decision", b"body", DECISION), *entries]).result()
        events = [one.event for one in written if one.new]
        assert store.read("s") == events
        assert list(store.damage()) == []
    with closing(SQLiteStore(path, read_only=True)) as store:
        assert store.read("s") == events
        assert all(store.find("s", event.key) == event for event in events if event.key is not None)


class WritesKeysAgain(MemoryStore):
    def append(self, stream, entries):
        return super().append(
            stream, [msgspec.structs.replace(entry, key=None) for entry in entries]
        )


class ShowsHalves(MemoryStore):
    def read(self, stream, after=0, limit=10_000):
        return super().read(stream, after, limit - 1 if stream == "polling" else limit)


class LosesWhatIsOpen(MemoryStore):
    def close(self):
        self.delete_events("reopening", 10**9)


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (WritesKeysAgain, "gives the event that stands"),
        (ShowsHalves, "become visible together"),
        (LosesWhatIsOpen, "closing writes all that was begun"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_broken_store_is_found_out(broken, rule):
    store = broken()
    with pytest.raises(AssertionError, match=f"{broken.__name__} breaks a rule: .*{rule}"):
        check_store(lambda: store, forgets=True)
