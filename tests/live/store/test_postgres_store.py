import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress

import psycopg
import pytest
from refusals import raises_code
from waiting import wait_until

from submax.core.errors import StoreError
from submax.live.store.event import Entry
from submax.live.store.migrations import POSTGRES, newest
from submax.live.store.postgres_store import PostgresStore

PROCESSES, APPENDS = (32, 1000) if os.environ.get("SUBMAX_SOAK") == "1" else (3, 60)
KEYS = PROCESSES * APPENDS // 2
WRITE = """
import sys
from submax.live.store.event import Entry
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


def append(store, *keys):
    return store.append("s", [Entry("kind", b"", key) for key in keys]).result()


def keys(store):
    return [event.key for event in store.read("s")]


def execute(address, statement):
    with psycopg.connect(address, autocommit=True) as connection:
        return connection.execute(statement)


def select(address, statement):
    return execute(address, statement).fetchall()


def test_processes_that_start_at_once_write_each_key_once_and_a_reader_misses_nothing(
    postgres_address,
):
    seen, writing = [], True
    with ExitStack() as stack:
        # Each key is for two of the processes.
        children = [
            stack.enter_context(process(WRITE, postgres_address, first, APPENDS, KEYS))
            for first in range(0, PROCESSES * APPENDS // 2, APPENDS // 2)
        ]
        for child in children:
            assert child.stdout.readline() == "ready\n"
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        # All of them and this one open the store, which is empty, at the same moment.
        store = stack.enter_context(closing(PostgresStore(postgres_address)))
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
        wait_until(lambda: store.try_lead("matter"))
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
        wait_until(lambda: second.try_lead("matter"))
        with suppress(StoreError):
            assert not first.try_lead("matter")


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
            blocker.execute("LOCK TABLE events")
            waiting = store.append("s", [Entry("kind", b"", "k")])
            wait_until(lambda: select(postgres_address, WAITING))
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
        # A restart between two uses is not noticed.
        postgres.stop()
        postgres.start()
        append(store, "after")
        assert keys(store) == ["before", "k", "after"]
        assert store.try_lead("matter")


WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def test_settings_of_the_database_do_not_weaken_the_store(postgres_address):
    name = postgres_address.split("/")[-1]
    execute(postgres_address, f"ALTER DATABASE {name} SET synchronous_commit = off")
    isolation = "default_transaction_isolation = 'serializable'"
    execute(postgres_address, f"ALTER DATABASE {name} SET {isolation}")
    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        stores = [stack.enter_context(closing(PostgresStore(postgres_address))) for _ in range(4)]
        written = pool.map(lambda store: [append(store, str(key)) for key in range(25)], stores)
        assert sum(each.new for some in written for (each,) in some) == 25
        for statement in NOTED_SETTING:
            execute(postgres_address, statement)
        append(stores[0], "noted")
    assert select(postgres_address, "SELECT setting FROM noted") == [("on",)]


NOTED_SETTING = (
    "CREATE TABLE noted (setting TEXT)",
    """CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO noted VALUES (current_setting('synchronous_commit'));
        RETURN NULL;
    END $$""",
    "CREATE TRIGGER noting AFTER INSERT ON events EXECUTE FUNCTION note()",
)
"""Notes how durable the sessions that write events want to be."""


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


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:hidden@127.0.0.1:1/d",
        "postgresql://u:hidden@127.0.0.1:{port}/d",
        "postgresql://submax:{password}@127.0.0.1:{port}/hidden_none",
        "postgresql://u:hid/den@127.0.0.1:1/d",
        "postgresql://u:hid den@127.0.0.1:1/d",
        "postgresql://u:hid%den@127.0.0.1:1/d",
        "postgresql://u:hidden@127.0.0.1:port/d",
        "postgresql://u@127.0.0.1:1/d?passwort=hidden",
        "hidden",
    ],
)
def test_a_wrong_address_is_refused_without_telling_the_password(postgres, address):
    password = postgres.address("").split(":")[2].split("@")[0]
    with raises_code("store-unavailable") as refused:
        PostgresStore(address.format(port=postgres.port, password=password))
    text = str(refused.value)
    assert "\n" not in text
    assert password not in text
    assert not any(part in text for part in ("hidden@", "hid/", "hid ", "=hidden", "'hidden'"))
