"""What is packed into the rows of a SQLite file comes back as it was."""

from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from submax.live.declaring.names import new_identifier
from submax.live.log.records import ACTIVATION, DECISION, REWARD, TICK
from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.event import Entry
from submax.live.store.sqlite_format.event_row import KINDS
from submax.live.store.sqlite_format.packed_key import packed, unpacked, unpacked_many
from submax.live.store.sqlite_store import SQLiteStore

UUIDS = st.uuids().map(str)
KEYS = st.one_of(
    st.none(),
    st.text(max_size=50),
    st.builds("{} {}{}".format, st.characters(), UUIDS, st.text(max_size=8)),
    st.builds("d {}".format, UUIDS.map(str.upper)),
    st.builds("d {}".format, UUIDS.map(lambda one: one.replace("-", " "))),
    st.builds("d {}".format, UUIDS.map(lambda one: one.replace("-", "_"))),
)


@given(st.lists(KEYS, max_size=120))
def test_keys_come_back_as_they_were(keys):
    stored = [packed(key) for key in keys]
    assert [unpacked(one) for one in stored] == keys
    assert unpacked_many(stored) == keys


@given(st.lists(UUIDS, min_size=60, max_size=120), st.sampled_from(["", " reward", " 🦆"]))
def test_many_packed_keys_come_back_as_they_were(identifiers, rest):
    keys = [f"r {identifier}{rest}" for identifier in identifiers]
    stored = [packed(key) for key in keys]
    assert all(isinstance(one, bytes) for one in stored)
    assert unpacked_many(stored) == keys


def test_an_id_that_was_made_here_takes_16_bytes():
    assert len(packed(f"d {new_identifier()}")) == 17
    assert packed("d visit-1") == "d visit-1"


def test_bytes_of_a_damaged_key_do_not_stop_the_search():
    assert unpacked(b"d123") == b"d123"
    assert unpacked_many([b"d123"] * 100) == [b"d123"] * 100


def test_the_frequent_kinds_are_those_of_the_log():
    assert set(KINDS) == {DECISION, REWARD, ACTIVATION, TICK}


@given(
    st.lists(
        st.tuples(
            st.sampled_from([DECISION, REWARD, "declared"]),
            KEYS.filter(lambda key: key is None or key.isprintable()),
            st.one_of(st.none(), st.builds("d {}".format, UUIDS), st.just("d visit-1")),
        ),
        max_size=8,
    )
)
def test_events_are_read_as_they_were_appended(tmp_path_factory, given_entries):
    path = tmp_path_factory.mktemp("store") / "page.db"
    decision = "d 01890a5d-ac96-774b-bcce-b302099a8057"
    entries = [
        Entry(DECISION, b"body", decision),
        Entry(REWARD, b"", "r 01890a5d-ac96-774b-bcce-b302099a8057 reward", decision),
        Entry(REWARD, b"", "r visit-1 reward", decision),
        *(Entry(kind, b"", key, about) for kind, key, about in given_entries),
    ]
    with closing(SQLiteStore(path)) as store:
        written = store.append("s", entries).result()
        events = [one.event for one in written if one.new]
        assert store.read("s") == events
        assert store.read_columns("s").listed() == EventColumns.of(events).listed()
        assert list(store.damage()) == []
