import re
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import closing
from threading import Timer

import pytest
from refusals import raises_code

from submax.core.errors import StoreError
from submax.live.store.event import Entry
from submax.live.store.group_commit import QueuedAppend
from submax.live.store.migrations import SQLITE, newest
from submax.live.store.sqlite_format.event_row import LAST_POSITION
from submax.live.store.sqlite_store import SQLiteStore

HOLD = """
import sys
from submax.live.store.sqlite_store import SQLiteStore
store = SQLiteStore(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""
FILL = """
import resource, sys
from submax.core.errors import StoreError
from submax.live.store.event import Entry
from submax.live.store.sqlite_store import SQLiteStore

def append(number):
    store.append("s", [Entry("kind", bytes(1000), str(number))]).result()
    print(number, flush=True)

store = SQLiteStore(sys.argv[1])
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, unlimited[1]))
number = 0
try:
    while True:
        append(number)
        number += 1
except StoreError as error:
    print(error, file=sys.stderr)
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
append(number)
append(number + 1)
store.close()
"""
NEXT = ("CREATE TABLE more (value TEXT)", "ALTER TABLE events ADD COLUMN extra TEXT")
PATIENCE = 30.0
"""Seconds after which a signal must have come."""
BROKEN = ("CREATE TABLE more (value TEXT)", "INSERT INTO nowhere VALUES (1)")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def holder(path):
    """Another process that has the store open."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"open\n"
        yield process
        process.kill()


def append(store, *keys):
    return store.append("s", [Entry("kind", b"", key) for key in keys]).result()


def keys(store):
    return [event.key for event in store.read("s")]


def write(store, appends):
    """Write appends of several callers together, as if they had waited at the same time."""
    return store._write([QueuedAppend(stream, entries, Future()) for stream, entries in appends])


def traced(store):
    """The statements that the store executes from now on; what triggers do is part of them."""
    statements = set()
    store._writer.set_trace_callback(statements.add)
    return statements


def execute(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()


def test_a_second_process_that_writes_is_refused(path, holder):
    with pytest.raises(StoreError) as refused:
        SQLiteStore(path)
    assert str(path) in str(refused.value)
    assert f"process {holder.pid}" in str(refused.value)


def test_a_second_writer_in_the_same_process_is_refused(path):
    with closing(SQLiteStore(path)), raises_code("store-unavailable"):
        SQLiteStore(path)


def test_a_killed_process_frees_the_store(path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with closing(SQLiteStore(path)) as store:
        assert append(store, "k")[0].new


def test_a_reader_sees_what_is_committed_while_another_writes(path):
    with (
        closing(SQLiteStore(path)) as writer,
        closing(SQLiteStore(path, read_only=True)) as reader,
    ):
        for number in range(3):
            append(writer, str(number))
            assert keys(reader) == keys(writer) == [str(each) for each in range(number + 1)]
        assert writer.try_lead("matter")
        assert not reader.try_lead("matter")


def test_a_reader_does_not_write(path):
    SQLiteStore(path).close()
    with closing(SQLiteStore(path, read_only=True)) as reader:
        for write in (
            lambda: append(reader, "k"),
            lambda: reader.put_blob("n", b""),
            lambda: reader.delete_blob("n"),
        ):
            with raises_code("store-unavailable"):
                write()


def test_a_reader_needs_a_store_that_is_there(path):
    with raises_code("invalid-input"):
        SQLiteStore(path, read_only=True)
    assert not path.exists()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_database_is_named(path, read_only):
    path.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    with raises_code("invalid-input"):
        SQLiteStore(path, read_only=read_only)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_with_other_tables_is_left_alone(path, read_only):
    execute(path, "CREATE TABLE customers (name TEXT)")
    with raises_code("invalid-input"):
        SQLiteStore(path, read_only=read_only)
    assert execute(path, "SELECT name FROM sqlite_master") == [("customers",)]


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_refused_with_both_versions(path, read_only):
    SQLiteStore(path).close()
    execute(path, "UPDATE submax_schema SET version = 7")
    with raises_code("invalid-input"):
        SQLiteStore(path, read_only=read_only)


@pytest.mark.parametrize("filled", [False, True])
def test_a_migration_reaches_the_newest_schema(path, filled):
    if filled:
        with closing(SQLiteStore(path)) as store:
            append(store, "before")
    with closing(SQLiteStore(path, migrations=(*SQLITE, NEXT))) as store:
        append(store, "after")
        assert keys(store) == ["before", "after"][not filled :]
    assert execute(path, "SELECT version FROM submax_schema") == [(newest(SQLITE) + 1,)]
    assert execute(path, "SELECT extra FROM events") == [(None,)] * (1 + filled)


def test_a_migration_that_fails_changes_nothing(path):
    with closing(SQLiteStore(path)) as store:
        append(store, "before")
    with raises_code("store-unavailable"):
        SQLiteStore(path, migrations=(*SQLITE, BROKEN))
    assert execute(path, "SELECT name FROM sqlite_master WHERE name = 'more'") == []
    with closing(SQLiteStore(path)) as store:
        assert keys(store) == ["before"]


def test_a_full_disk_fails_in_words_and_loses_nothing(path):
    with closing(SQLiteStore(path)) as store:
        append(store, "before")
        (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
        for connection in (store._writer, store._unsynced_writer):
            connection.execute(f"PRAGMA max_page_count = {pages}")
        with raises_code("store-unavailable"):
            store.append("s", [Entry("kind", bytes(100_000), "too large")]).result()
        with raises_code("store-unavailable"):
            store.put_blob("name", bytes(100_000))
        assert keys(store) == ["before"]
        store._writer.execute("PRAGMA max_page_count = 1000000")
        store.append("s", [Entry("kind", bytes(100_000), "too large")]).result()
    with closing(SQLiteStore(path)) as store:
        assert keys(store) == ["before", "too large"]


def test_a_file_that_cannot_grow_loses_nothing_that_was_acknowledged(path):
    child = subprocess.run(
        [sys.executable, "-c", FILL, path], capture_output=True, text=True, check=True
    )
    assert re.search(r"store\.db cannot .* nothing that was acknowledged is lost", child.stderr)
    with closing(SQLiteStore(path)) as store:
        assert keys(store) == child.stdout.split()
        assert len(keys(store)) > 10


def test_a_value_that_cannot_be_held_fails_alone(path):
    with closing(SQLiteStore(path)) as store:
        appends = [
            store.append("s", [Entry("kind", b"", f"with {key}"), Entry("kind", b"", key)])
            for key in ("a", "\ud800", "b")
        ]
        assert isinstance(appends[1].exception(), ValueError)
        assert [len(append.result()) for append in (appends[0], appends[2])] == [2, 2]
        assert keys(store) == ["with a", "a", "with b", "b"]


def test_a_page_that_is_too_long_for_a_value_of_sqlite_is_read(path):
    with closing(SQLiteStore(path)) as store:
        store.append("s", [Entry("kind", bytes(1000), str(number)) for number in range(100)])
        assert append(store, "last")[0].new
        events, sealed = store.read("s"), store.read_sealed_columns("s", 0, 200)
        columns = store.read_columns("s").listed()
        # The limit is 10⁹ bytes unless it is set.
        store._reader.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 70_000)
        assert store.read_columns("s").listed() == columns
        found = store.read_sealed_columns("s", 0, 200)
        assert found.listed() == sealed.listed() == events
        assert found.whole.all()
        assert len(store.read_columns("s", events[-2].position).listed()) == 1


def test_new_events_of_several_streams_are_written_by_one_statement(path):
    entries = [Entry("kind", b"1", "a"), Entry("kind", b"2", "b"), Entry("kind", b"3")]
    with closing(SQLiteStore(path)) as store:
        for stream in ("s", "t"):
            store.append(stream, [Entry("kind", b"", "first")]).result()
        statements = traced(store)
        written = write(store, [("s", entries), ("t", entries[:1]), ("s", [Entry("kind", b"4")])])
        assert [statement.split()[0] for statement in statements] == ["INSERT"]
        assert [len(results) for results in written] == [3, 1, 1]
        assert all(one.new for results in written for one in results)
        assert [event.position for event in store.read("s")] == [1, 3, 4, 5, 7]
        assert [event.position for event in store.read("t")] == [2, 6]
        assert [event.body for event in store.read("s")[1:]] == [b"1", b"2", b"3", b"4"]
        assert list(store.damage()) == []
    assert execute(path, "SELECT name, last_position FROM streams") == [("s", 7), ("t", 6)]


@pytest.mark.parametrize("keys_given", [("old", "new"), ("new", "old"), ("new", "new")])
def test_a_key_that_exists_keeps_only_its_own_entry_from_being_written(path, keys_given):
    with closing(SQLiteStore(path)) as store:
        append(store, "old")
        written = write(store, [("s", [Entry("kind", b"", key)]) for key in keys_given])
        events = [results[0].event for results in written]
        assert [event.key for event in events] == list(keys_given)
        assert [results[0].new for results in written] == [
            key != "old" and key not in keys_given[:number] for number, key in enumerate(keys_given)
        ]
        assert keys(store) == ["old", "new"]
        assert append(store, "next")[0].event.position == 3
        assert list(store.damage()) == []


def test_an_entry_can_be_about_one_that_is_written_with_it(path):
    with closing(SQLiteStore(path)) as store:
        append(store, "first")
        decision, reward = Entry("kind", b"", "d"), Entry("kind", b"", "r", "d")
        (made,), (given,) = write(store, [("s", [decision]), ("s", [reward])])
        assert given.event.about_position == made.event.position
        assert given.event.about_at == made.event.at


@pytest.fixture
def interrupts():
    """SIGINT raises a KeyboardInterrupt, whatever runs the tests has set."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_leaves_no_transaction_open(path, interrupts):
    """A signal that comes while SQLite works is noticed right after it, whatever was executed."""
    with closing(SQLiteStore(path)) as store:
        append(store, "a")
        for number in range(30):
            timer = Timer(0.0005 * (number % 4), signal.raise_signal, [signal.SIGINT])
            try:
                timer.start()
                while timer.is_alive():
                    store.put_blob("blob", bytes(10_000))
                time.sleep(PATIENCE)
            except KeyboardInterrupt:
                pass
            assert append(store, f"b{number}")[0].new
        assert store._writer.execute("PRAGMA synchronous").fetchone() == (2,)
        assert not store._writer.in_transaction
        assert not store._unsynced_writer.in_transaction
    with closing(SQLiteStore(path)) as store:
        assert keys(store) == ["a", *(f"b{number}" for number in range(30))]


def test_a_statement_in_a_transaction_that_was_left_open_is_refused(path):
    with closing(SQLiteStore(path)) as store:
        append(store, "a")
        store._writer.execute("BEGIN IMMEDIATE")
        with raises_code("store-unavailable"):
            append(store, "b")
        assert append(store, "c")[0].new
    with closing(SQLiteStore(path)) as store:
        assert keys(store) == ["a", "c"]


def test_an_event_beyond_the_last_position_is_refused(path):
    with closing(SQLiteStore(path)) as store:
        append(store, "first")
    execute(path, f"UPDATE streams SET last_position = {LAST_POSITION - 1}")
    with closing(SQLiteStore(path)) as store:
        assert append(store, "second")[0].event.position == LAST_POSITION
        with raises_code("invalid-input"):
            append(store, "third")
        assert keys(store) == ["first", "second"]


def test_what_is_queued_is_written_when_the_store_is_closed(path):
    store = SQLiteStore(path)
    appends = [store.append("s", [Entry("kind", b"")]) for _ in range(100)]
    store.close()
    store.close()
    assert all(append.done() and append.result()[0].new for append in appends)
    assert not store.try_lead("matter")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with raises_code("invalid-input"):
        SQLiteStore(tmp_path / "nowhere" / "store.db")


FORK = """
import os, sys
from submax.core.errors import StoreError
from submax.live.store.event import Entry
from submax.live.store.sqlite_store import SQLiteStore
store = SQLiteStore(sys.argv[1])
child = os.fork()
if child == 0:
    try:
        store.append("log", [Entry("kind", b"")])
    except StoreError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(store.append("log", [Entry("kind", b"")]).result(10)[0].new)
store.close()
"""


def test_a_forked_process_is_told_to_open_its_own(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", FORK, str(tmp_path / "forked.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    told, parent = done.stdout.splitlines()
    assert "forked after the store was opened" in told
    assert parent == "True"
