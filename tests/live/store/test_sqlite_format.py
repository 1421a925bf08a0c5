"""What is packed into the rows of a SQLite file comes back as it was."""

import os
import struct
from contextlib import closing, suppress
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises_code

from submax.core.errors import InputError
from submax.live.declaring.names import new_identifier
from submax.live.log.records import ACTIVATION, DECISION, REWARD, TICK
from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.columns.event_kinds import KINDS
from submax.live.store.event import Entry, Event
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.sqlite_format.event_record import checked_event, record_of, sealed_event
from submax.live.store.sqlite_format.packed_key import is_packed, packed, unpacked, unpacked_many
from submax.live.store.sqlite_format.record_columns import columns_of, sealed_columns_of
from submax.live.store.sqlite_store import SQLiteStore

often = settings(max_examples=100 if "SUBMAX_SOAK" in os.environ else 30)
UUIDS = st.uuids().map(str)
KEYS = st.one_of(
    st.none(),
    st.text(max_size=50),
    st.builds("{} {}{}".format, st.characters(), UUIDS, st.text(max_size=8)),
    st.builds("d {}".format, UUIDS.map(str.upper)),
    st.builds("d {}".format, UUIDS.map(lambda one: one.replace("-", " "))),
    st.builds("d {}".format, UUIDS.map(lambda one: one.replace("-", "_"))),
)


@often
@given(st.lists(KEYS, max_size=120))
def test_keys_come_back_as_they_were(keys):
    stored = [packed(key) for key in keys]
    assert [unpacked(one) for one in stored] == keys
    assert unpacked_many(stored) == keys


@often
@given(st.lists(UUIDS, min_size=60, max_size=120), st.sampled_from(["", " reward", " 🦆"]))
def test_many_packed_keys_come_back_as_they_were(identifiers, rest):
    keys = [f"r {identifier}{rest}" for identifier in identifiers]
    stored = [packed(key) for key in keys]
    assert all(isinstance(one, bytes) for one in stored)
    assert unpacked_many(stored) == keys


def test_an_id_that_was_made_here_takes_16_bytes():
    assert len(packed(f"d {new_identifier()}")) == 17
    assert packed("d visit-1") == b"d visit-1"


def test_bytes_of_a_damaged_key_do_not_stop_the_search():
    for damaged in (b"\x80123", b"\xff\xfe"):
        text = damaged.decode("utf-8", "surrogateescape")
        assert unpacked(damaged) == text
        assert unpacked_many([damaged] * 100) == [text] * 100


@often
@given(KEYS.filter(lambda key: key is not None))
def test_a_packed_key_is_no_text(key):
    stored = packed(key)
    assert is_packed(stored) == (stored != key.encode())


def test_the_frequent_kinds_are_those_of_the_log():
    assert set(KINDS) == {DECISION, REWARD, ACTIVATION, TICK}


@often
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


TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40)
EVENTS = st.builds(
    Event,
    position=st.integers(1, 2**40 - 1),
    at=st.floats(allow_nan=False),
    kind=st.one_of(st.sampled_from([DECISION, REWARD, ACTIVATION, TICK]), TEXTS),
    key=st.one_of(st.none(), TEXTS, KEYS.filter(lambda key: key is None or key.isprintable())),
    about=st.one_of(st.none(), st.builds("d {}".format, UUIDS), TEXTS),
    about_position=st.integers(0, 2**40 - 1),
    about_at=st.floats(allow_nan=False),
    body=st.binary(max_size=60),
)
RUNS = st.lists(st.tuples(EVENTS, st.integers(1, 40)), min_size=1, max_size=6)


def sealed_as(event, previous):
    return SealedEvent.of("s", event, previous)


def records(events):
    sealed = [sealed_as(event, event.position // 2) for event in events]
    return [record_of(one, packed(one.event.key)) for one in sealed]


@often
@given(EVENTS, st.integers(0, 2**40 - 1))
def test_a_record_holds_its_event(event, previous):
    key = packed(event.key)
    sealed, size = sealed_as(event, previous), None if key is None else len(key)
    record = record_of(sealed, key)
    assert sealed_event("s", record) == sealed
    assert repr(sealed_event("s", record)) == repr(sealed)
    assert checked_event("s", event.position, size, record) == sealed
    assert checked_event("s", event.position, size, record).whole


@often
@given(EVENTS, st.data())
def test_a_flipped_bit_of_a_record_is_found(event, data):
    key = packed(event.key)
    record = bytearray(record_of(sealed_as(event, 0), key))
    place = data.draw(st.integers(0, len(record) - 1))
    record[place] ^= 1 << data.draw(st.integers(0, 7))
    size = None if key is None else len(key)
    assert not checked_event("s", event.position, size, bytes(record)).whole


@often
@given(RUNS)
def test_columns_hold_the_events_of_the_records(runs):
    events = [event for event, count in runs for _ in range(count)]
    columns = columns_of(b"".join(records(events)))
    expected = EventColumns.of(events)
    assert columns.listed() == expected.listed()
    assert columns.about_position.tolist() == expected.about_position.tolist()


@often
@given(RUNS, st.integers(1, 1000))
def test_records_that_are_cut_off_are_refused(runs, cut):
    whole = records([event for event, count in runs for _ in range(count)])
    data = b"".join(whole)
    left = len(data) - 1 - cut % len(whole[-1]) if len(whole[-1]) > 1 else 0
    if data[:left] in (b"", b"".join(whole[:-1])):
        return
    with raises_code("invalid-input"):
        columns_of(data[:left])


@often
@given(EVENTS.filter(lambda event: event.key is not None), st.integers(0, 255))
def test_a_damaged_record_is_refused_or_read_as_columns(event, flags):
    """Whatever the flags say, nothing outside of the data is read."""
    record = bytearray(records([event])[0])
    record[31] = flags
    with suppress(InputError):
        columns_of(bytes(record)).listed()


@often
@given(RUNS, st.data())
def test_checksums_of_many_records_are_those_of_single_events(runs, data):
    events = [event for event, count in runs for _ in range(count)]
    stored = [bytearray(one) for one in records(events)]
    places = st.integers(0, len(stored) - 1)
    for number in data.draw(st.lists(places, max_size=4)):
        # The checksum, the time, or the last byte of the body.
        changed = data.draw(st.sampled_from([12, 19, 20, 27, len(stored[number]) - 1]))
        stored[number][changed] ^= 1
    joined = b"".join(stored)
    try:
        expected = [sealed_event("s", bytes(one)) for one in stored]
        found = sealed_columns_of("s", joined)
    except (ValueError, struct.error, InputError):
        return
    assert found.whole.tolist() == [one.whole for one in expected]
    assert found.previous.tolist() == [one.previous for one in expected]
    assert repr(found.listed()) == repr([one.event for one in expected])


@often
@given(st.lists(st.uuids().map(str), min_size=20, max_size=40), st.integers(0, 10**6))
def test_checksums_of_usual_events_are_checked_together(identifiers, flipped):
    decisions = [
        Event(number, 1e9, DECISION, f"d {one}", None, 0, 0.0, b"body")
        for number, one in enumerate(identifiers, start=1)
    ]
    rewards = [
        Event(100 + event.position, 2e9, REWARD, f"r {one} reward", f"d {one}", 1, 1e9, b"one")
        for event, one in zip(decisions, identifiers, strict=True)
    ]
    data = bytearray(b"".join(records([*decisions, *rewards])))
    assert sealed_columns_of("s", bytes(data)).whole.all()
    assert not sealed_columns_of("other", bytes(data)).whole.any()
    # The body of the last reward.
    data[-1 - flipped % 3] ^= 1
    whole = sealed_columns_of("s", bytes(data)).whole
    assert whole[:-1].all()
    assert not whole[-1]


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("bit", [5, 6, 7])
def test_flags_without_a_meaning_are_damage(count, bit):
    events = [
        Event(number, 1e9, DECISION, f"d {UUID(int=number)}", None, 0, 0.0, b"body")
        for number in range(1, count + 1)
    ]
    data = bytearray(b"".join(records(events)))
    assert sealed_columns_of("s", bytes(data)).whole.all()
    # The flags of the first record.
    data[31] ^= 1 << bit
    whole = sealed_columns_of("s", bytes(data)).whole
    assert not whole[0]
    assert whole[1:].all()


def test_the_records_of_short_runs_are_found():
    events = [
        Event(number, 0.0, DECISION, f"d {number}", None, 0, 0.0, bytes(number % 3))
        for number in range(1, 2000)
    ]
    columns = columns_of(b"".join(records(events)))
    assert columns.listed() == EventColumns.of(events).listed()


def test_a_key_that_is_too_long_is_refused(tmp_path):
    with closing(SQLiteStore(tmp_path / "page.db")) as store:
        with raises_code("invalid-input"):
            store.append("s", [Entry(DECISION, b"", "d" * 70_000)]).result()
        store.append("s", [Entry(DECISION, b"", "d" * 60_000)]).result()
        assert len(store.read("s")[0].key) == 60_000
