import os
from contextlib import closing
from functools import partial
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submax.live.store.event import Entry
from submax.live.store.memory_store import MemoryStore
from submax.live.store.postgres_store import PostgresStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.testing import check_store


def test_the_store_in_memory_keeps_its_contract():
    store = MemoryStore()
    check_store(lambda: store, forgets=True)


def test_the_store_in_a_file_keeps_its_contract(tmp_path):
    check_store(partial(SQLiteStore, tmp_path / "store.db"))


def test_the_store_in_postgres_keeps_its_contract(postgres_address):
    check_store(partial(PostgresStore, postgres_address))


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


class SkipsAtPages(MemoryStore):
    def read(self, stream, after=0, limit=10_000):
        return super().read(stream, after + 1 if limit == 5 else after, limit)


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
        (SkipsAtPages, "pages of 5 give every event once"),
        (ShowsHalves, "become visible together"),
        (LosesWhatIsOpen, "closing writes all that was begun"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_broken_store_is_found_out(broken, rule):
    store = broken()
    with pytest.raises(AssertionError, match=f"{broken.__name__} breaks a rule: .*{rule}"):
        check_store(lambda: store, forgets=True)
