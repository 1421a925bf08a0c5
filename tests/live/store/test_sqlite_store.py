import gc
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from threading import Timer

import pytest
from refusals import raises_code

from submax.live.store.event import Entry
from submax.live.store.sqlite_store import SQLiteStore

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
except StoreError:
    pass
try:
    store.put_blob("name", bytes(1_000_000))
except StoreError as error:
    print(error.code, file=sys.stderr)
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
append(number)
append(number + 1)
store.close()
"""
PATIENCE = 30.0
"""Seconds after which a signal must have come."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def append(store, *keys):
    return store.append("s", [Entry("kind", b"", key) for key in keys]).result()


def keys(store):
    return [event.key for event in store.read("s")]


def test_a_reader_sees_what_is_committed_while_another_writes_and_does_not_write(path):
    with (
        closing(SQLiteStore(path)) as writer,
        closing(SQLiteStore(path, read_only=True)) as reader,
    ):
        for number in range(3):
            append(writer, str(number))
            assert keys(reader) == keys(writer) == [str(each) for each in range(number + 1)]
        assert writer.try_lead("matter")
        assert not reader.try_lead("matter")
        for write in (
            lambda: append(reader, "k"),
            lambda: reader.put_blob("n", b""),
            lambda: reader.delete_blob("n"),
        ):
            with raises_code("store-unavailable"):
                write()


def test_the_file_of_a_reader_and_the_folder_of_a_store_must_be_there(path, tmp_path):
    with raises_code("invalid-input"):
        SQLiteStore(path, read_only=True)
    assert not path.exists()
    with raises_code("invalid-input"):
        SQLiteStore(tmp_path / "nowhere" / "store.db")


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_database_is_refused(path, read_only):
    path.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    with raises_code("invalid-input"):
        SQLiteStore(path, read_only=read_only)


def test_a_file_that_cannot_grow_loses_nothing_that_was_acknowledged(path):
    child = subprocess.run(
        [sys.executable, "-c", FILL, path], capture_output=True, text=True, check=True
    )
    assert child.stderr == "store-unavailable\n"
    with closing(SQLiteStore(path)) as store:
        assert keys(store) == child.stdout.split()
        assert len(keys(store)) > 10


@pytest.fixture
def connections(monkeypatch):
    """All connections to SQLite that are made from now on."""
    made, connect = [], sqlite3.connect

    def remembered(*given, **options):
        made.append(connect(*given, **options))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", remembered)
    return made


def test_a_full_database_loses_nothing_that_was_acknowledged(path, connections):
    large = [Entry("kind", bytes(100_000), "too large")]
    with closing(SQLiteStore(path)) as store:
        append(store, "before")
        (pages,) = connections[0].execute("PRAGMA page_count").fetchone()
        for one in connections:
            one.execute(f"PRAGMA max_page_count = {pages}")
        with raises_code("store-unavailable"):
            store.append("s", large).result()
        with raises_code("store-unavailable"):
            store.put_blob("name", bytes(100_000))
        assert keys(store) == ["before"]
        for one in connections:
            one.execute("PRAGMA max_page_count = 1000000")
        store.append("s", large).result()
    with closing(SQLiteStore(path)) as store:
        assert keys(store) == ["before", "too large"]


@pytest.fixture
def interrupts():
    """SIGINT raises a KeyboardInterrupt, whatever the test runner has set.

    Without garbage collection: an interrupt inside a callback of the collector, such as those
    of Hypothesis, is swallowed.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, before)


def synced(connections, write):
    """How those of the connections are synced that a function uses: 2 is FULL."""
    used = set()
    for one in connections:
        one.set_trace_callback(lambda _, one=one: used.add(one))
    write()
    for one in connections:
        one.set_trace_callback(None)
    return {one.execute("PRAGMA synchronous").fetchone()[0] for one in used}


def test_an_interrupt_leaves_no_transaction_open(path, interrupts, connections):
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
            assert not any(one.in_transaction for one in connections)
        assert synced(connections, lambda: append(store, "last")) == {2}
    with closing(SQLiteStore(path)) as store:
        assert keys(store) == ["a", *(f"b{number}" for number in range(30)), "last"]
