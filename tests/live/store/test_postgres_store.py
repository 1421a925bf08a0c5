import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from random import Random

import psycopg
import pyarrow.parquet as pq
import pytest
from refusals import raises_code

from submax.core.errors import StoreError
from submax.live.bandits.open import open_bandit
from submax.live.store.event import Entry
from submax.live.store.migrations import POSTGRES, newest
from submax.live.store.postgres_store import PostgresStore
from submax.web.server.exports.export_runner import ExportRunner

PROCESSES, APPENDS = (32, 1000) if os.environ.get("SUBMAX_SOAK") == "1" else (4, 100)
KEYS = PROCESSES * APPENDS // 2
WRITE = """
import sys
from submax.live.store.event import Entry
from submax.live.store.postgres import connection as postgres_connection
from submax.live.store.postgres_store import PostgresStore

address, first, appends, keys = sys.argv[1], *map(int, sys.argv[2:])
print("ready", flush=True)
sys.stdin.readline()
store = PostgresStore(address)
for number in range(first, first + appends):
    entry = Entry("kind", b"", str(number % keys))
    (written,) = store.append("s", [entry]).result()
    assert written.event.key == entry.key
    if written.new:
        print(entry.key)
store.close()
"""
LEAD = """
import sys
from submax.live.store.postgres_store import PostgresStore
store = PostgresStore(sys.argv[1])
print(store.try_lead("matter"), flush=True)
sys.stdin.readline()
"""
NEXT = ("CREATE TABLE more (value TEXT)", "ALTER TABLE events ADD COLUMN extra TEXT")
BROKEN = ("CREATE TABLE more (value TEXT)", "INSERT INTO nowhere VALUES (1)")
LONG = Random(0).randbytes(5000).hex()
"""Too long for an index, and not to be compressed."""
PATIENCE_SECONDS = 20.0


@contextmanager
def process(script, *arguments):
    with subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def writers(address, appends, keys):
    """Processes that all open the store at the same moment; each key is for two of them."""
    with ExitStack() as stack:
        children = [
            stack.enter_context(process(WRITE, address, number * appends // 2, appends, keys))
            for number in range(PROCESSES)
        ]
        for child in children:
            assert child.stdout.readline() == "ready\n"
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        yield children


def append(store, *keys, stream="s"):
    return store.append(stream, [Entry("kind", b"", key) for key in keys]).result()


def keys(store):
    return [event.key for event in store.read("s")]


def execute(address, statement):
    with psycopg.connect(address, autocommit=True) as connection:
        return connection.execute(statement)


def select(address, statement):
    return execute(address, statement).fetchall()


def leads(store):
    try:
        return store.try_lead("matter")
    except StoreError:
        return False


def until(condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_processes_that_start_at_once_write_each_key_once_and_a_reader_misses_nothing(
    postgres_address,
):
    seen, writing = [], True
    with (
        writers(postgres_address, APPENDS, KEYS) as children,
        closing(PostgresStore(postgres_address)) as store,
    ):
        while writing:
            writing = any(child.poll() is None for child in children)
            while page := store.read("s", seen[-1].position if seen else 0, 7):
                seen += page
        assert [child.returncode for child in children] == [0] * PROCESSES
        new = Counter(key for child in children for key in child.stdout.read().split())
        assert new == Counter({str(number): 1 for number in range(KEYS)})
        assert seen == store.read("s", limit=10**6)
        assert Counter(event.key for event in seen) == new
    assert select(postgres_address, "SELECT version FROM submax_schema") == [(newest(POSTGRES),)]


def test_the_lead_is_handed_over_when_its_process_is_killed(postgres_address):
    with closing(PostgresStore(postgres_address)) as store:
        with process(LEAD, postgres_address) as leader:
            assert leader.stdout.readline() == "True\n"
            assert not store.try_lead("matter")
            assert store.try_lead("other matter")
        until(lambda: store.try_lead("matter"))
        with closing(PostgresStore(postgres_address)) as other:
            assert not other.try_lead("matter")
            assert store.try_lead("matter")
            store.close()
            assert other.try_lead("matter")


def test_who_loses_the_connection_loses_the_lead(postgres, postgres_address):
    with (
        closing(PostgresStore(postgres_address)) as first,
        closing(PostgresStore(postgres_address)) as second,
    ):
        assert first.try_lead("matter")
        execute(postgres.address("postgres"), TERMINATE.format(postgres_address.split("/")[-1]))
        until(lambda: second.try_lead("matter"))
        assert not leads(first)


TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'
"""


def test_stores_in_two_schemas_do_not_meet(postgres_address):
    execute(postgres_address, "CREATE SCHEMA other")
    other_address = f"{postgres_address}?options=-csearch_path%3Dother"
    with (
        closing(PostgresStore(postgres_address)) as first,
        closing(PostgresStore(other_address)) as second,
    ):
        assert append(first, "k")[0].new
        assert append(second, "k")[0].new
        assert first.try_lead("matter")
        assert second.try_lead("matter")


def test_an_append_in_flight_fails_when_the_server_stops_and_can_be_repeated(
    postgres, postgres_address
):
    with closing(PostgresStore(postgres_address)) as store:
        append(store, "before")
        with closing(psycopg.connect(postgres_address)) as blocker:
            blocker.execute("SELECT pg_advisory_lock(%s)", (store._lock("stream", "s"),))
            waiting = store.append("s", [Entry("kind", b"", "k")])
            until(lambda: select(postgres_address, WAITING))
            # At once: a server that ends its sessions one by one may end the blocker's first, and
            # then the append is rightly done.
            postgres.stop(signal.SIGQUIT)
        with raises_code("store-unavailable"):
            waiting.result()
        for use in (
            lambda: append(store, "k"),
            lambda: keys(store),
            lambda: store.try_lead("matter"),
            lambda: store.put_blob("name", b""),
        ):
            with raises_code("store-unavailable"):
                use()
        postgres.start()
        assert append(store, "k", "before")[0].new
        assert keys(store) == ["before", "k"]
        assert store.try_lead("matter")


WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory'"


def test_a_restart_between_two_uses_is_not_noticed(postgres, postgres_address):
    with closing(PostgresStore(postgres_address)) as store:
        append(store, "before")
        assert keys(store) == ["before"]
        assert store.try_lead("matter")
        postgres.stop()
        postgres.start()
        append(store, "after")
        assert keys(store) == ["before", "after"]
        assert store.try_lead("matter")


def test_settings_of_the_database_do_not_weaken_the_store(postgres_address):
    name = postgres_address.split("/")[-1]
    execute(postgres_address, f"ALTER DATABASE {name} SET synchronous_commit = off")
    isolation = "default_transaction_isolation = 'serializable'"
    execute(postgres_address, f"ALTER DATABASE {name} SET {isolation}")
    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        stores = [stack.enter_context(closing(PostgresStore(postgres_address))) for _ in range(4)]
        written = pool.map(lambda store: [append(store, str(key)) for key in range(25)], stores)
        assert sum(each.new for some in written for (each,) in some) == 25
        with stores[0]._writer.use() as connection:
            assert connection.execute("SHOW synchronous_commit").fetchall() == [("on",)]


@pytest.mark.parametrize("key", ["\0", "\ud800", LONG], ids=["null", "surrogate", "long"])
def test_a_value_that_cannot_be_held_fails_alone(postgres_address, key):
    with closing(PostgresStore(postgres_address)) as store:
        appends = [
            store.append("s", [Entry("kind", b"", f"with {each}"), Entry("kind", b"", each)])
            for each in ("a", key, "b")
        ]
        with raises_code("invalid-input"):
            appends[1].result()
        assert [len(each.result()) for each in (appends[0], appends[2])] == [2, 2]
        assert keys(store) == ["with a", "a", "with b", "b"]


def test_an_error_of_the_database_fails_the_append_and_not_the_store(postgres_address):
    with closing(PostgresStore(postgres_address)) as store:
        execute(postgres_address, "ALTER TABLE events RENAME TO elsewhere")
        with raises_code("store-unavailable"):
            append(store, "k")
        with raises_code("store-unavailable"):
            keys(store)
        execute(postgres_address, "ALTER TABLE elsewhere RENAME TO events")
        assert append(store, "k")[0].new
        assert keys(store) == ["k"]


def test_a_newer_schema_is_refused_with_both_versions(postgres_address):
    PostgresStore(postgres_address).close()
    execute(postgres_address, "UPDATE submax_schema SET version = 7")
    with raises_code("invalid-input"):
        PostgresStore(postgres_address)


def test_a_table_of_the_same_name_is_left_alone(postgres_address):
    execute(postgres_address, "CREATE TABLE events (name TEXT)")
    with raises_code("invalid-input"):
        PostgresStore(postgres_address)
    assert select(postgres_address, "SELECT to_regclass('submax_schema')") == [(None,)]


@pytest.mark.parametrize("filled", [False, True])
def test_a_migration_reaches_the_newest_schema(postgres_address, filled):
    if filled:
        with closing(PostgresStore(postgres_address)) as store:
            append(store, "before")
    with closing(PostgresStore(postgres_address, migrations=(*POSTGRES, NEXT))) as store:
        append(store, "after")
        assert keys(store) == ["before", "after"][not filled :]
    assert select(postgres_address, "SELECT version FROM submax_schema") == [
        (newest(POSTGRES) + 1,)
    ]
    assert select(postgres_address, "SELECT extra FROM events") == [(None,)] * (1 + filled)


def test_a_migration_that_fails_changes_nothing(postgres_address):
    with closing(PostgresStore(postgres_address)) as store:
        append(store, "before")
    with raises_code("store-unavailable"):
        PostgresStore(postgres_address, migrations=(*POSTGRES, BROKEN))
    assert select(postgres_address, "SELECT to_regclass('more')") == [(None,)]
    with closing(PostgresStore(postgres_address)) as store:
        assert keys(store) == ["before"]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("postgresql://u:hidden@127.0.0.1:1/d", "cannot be reached .*refused"),
        ("postgresql://u:hidden@nowhere.invalid/d", "'d' at nowhere.invalid cannot be reached"),
        ("postgresql://u:hidden@127.0.0.1:{port}/d", "authentication failed"),
        ("postgresql://submax:{password}@127.0.0.1:{port}/hidden_none", "does not exist"),
        ("postgresql://u:hidden@127.0.0.1:port/d", "cannot be read: write postgresql://"),
        ("postgresql://u:hid/den@127.0.0.1:1/d", "cannot be read"),
        ("postgresql://u:1/hidden@127.0.0.1:1/d", "cannot be read"),
        ("postgresql://u:hid den@127.0.0.1:1/d", "cannot be read"),
        ("postgresql://u:hid%den@127.0.0.1:1/d", "cannot be read"),
        ("postgresql://u@127.0.0.1:1/d?passwort=hidden", "cannot be read"),
        ("hidden", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_a_wrong_address_is_told_in_a_sentence_without_the_password(postgres, address, why):
    password = postgres.address("").split(":")[2].split("@")[0]
    with raises_code("store-unavailable") as refused:
        PostgresStore(address.format(port=postgres.port, password=password))
    text = str(refused.value)
    assert "\n" not in text
    assert password not in text
    assert not any(part in text for part in ("hidden@", "hid/", "hid ", "=hidden", "'hidden'"))


def test_closing_twice_does_nothing_and_writes_what_is_queued(postgres_address):
    store = PostgresStore(postgres_address)
    appends = [store.append("s", [Entry("kind", b"")]) for _ in range(100)]
    store.close()
    store.close()
    assert all(each.done() and each.result()[0].new for each in appends)
    with raises_code("store-unavailable"):
        store.try_lead("matter")


def test_a_process_of_its_own_exports_and_its_arguments_hold_no_password(
    postgres_address, tmp_path, monkeypatch
):
    started, arguments = subprocess.Popen, []

    def watched(command, **options):
        arguments.extend(command)
        return started(command, **options)

    monkeypatch.setattr(subprocess, "Popen", watched)
    with closing(PostgresStore(postgres_address)) as store:
        bandit = open_bandit(store, name="page", actions=["A"], background=False)
        bandit.decide(id="d")
        ExportRunner(store).write("page", tmp_path / "out.parquet")
        store.check_writable()
    assert pq.read_table(tmp_path / "out.parquet")["id"].to_pylist() == ["d"]
    assert arguments
    assert postgres_address not in arguments
