"""Segments that are written by columns are those that are written from single events."""

import msgspec
import numpy as np
import pytest

from submax.live.archive.page_check import holds_page
from submax.live.archive.page_table import page_tables
from submax.live.archive.segments.segment_reader import SegmentReader
from submax.live.archive.segments.segment_writer import SegmentWriter
from submax.live.declaring.names import new_identifier
from submax.live.declaring.settings import Settings
from submax.live.log.group_draw import GroupDraw
from submax.live.log.records import (
    DECISION,
    REWARD,
    TICK,
    DecisionMade,
    RewardGiven,
    decision_key,
    reward_key,
)
from submax.live.store.columns.sealed_columns import SealedColumns
from submax.live.store.event import Event
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.sqlite_format.event_record import record_of
from submax.live.store.sqlite_format.packed_key import packed
from submax.live.store.sqlite_format.record_columns import sealed_columns_of

DECLARED = {
    "arms": {"actions": [f"a{number}" for number in range(200)], "context": {}},
    "slots": {
        "actions": {"page": ["A", "B", "C"], "side": ["x", "y"]},
        "context": {"age": "number", "country": ["de", "fr"]},
    },
    "a range": {
        "actions": {"page": ["A", "B", "C"], "price": (0.0, 10.0)},
        "context": {"age": "number"},
    },
}


def decision(rng, declared, number):
    """The body of a decision: few layouts, and every field with several values."""
    slots = {"arms": [200], "slots": [3, 2], "a range": [3]}[declared]
    eligible = tuple(tuple(range(size - number % 2)) for size in slots)
    action = [int(rng.choice(indices)) for indices in eligible]
    probabilities = rng.dirichlet(np.ones(np.prod([len(one) for one in eligible]))).tolist()
    index = 0
    for choice, indices in zip(action, eligible, strict=True):
        index = index * len(indices) + choice
    propensity = probabilities[index] if number % 3 else 0.25
    context = {"arms": [], "slots": [rng.normal(), "de"], "a range": [rng.normal()]}[declared]
    if declared == "a range":
        action.append(rng.uniform(0, 10))
    drawn = GroupDraw(70_000, "bandit", 0.1, 0.0) if number % 5 < 2 else None
    return DecisionMade(
        action,
        propensity,
        [1, 300][number % 2],
        context,
        eligible,
        probabilities if declared != "a range" else None,
        bool(rng.integers(2)),
        bool(rng.integers(2)),
        [None, "visitor", "ü"][number % 3],
        drawn,
        bool(rng.integers(2)),
    )


EVENTS = {"arms": 2000, "slots": 800, "a range": 800}
"""So many that every layout of a body occurs 32 times."""


def log(declared, seed):
    rng, events = np.random.default_rng(seed), []
    for position in range(1, EVENTS[declared] + 1):
        at = 1e9 + position
        earlier = [event for event in events[-30:] if event.kind == DECISION]
        if earlier and position % 7 == 0:
            about = earlier[int(rng.integers(len(earlier)))]
            key = reward_key(about.key[2:], ["reward", "ü"][position % 2])
            body = msgspec.msgpack.encode(
                RewardGiven(float(rng.normal()), ["", "me"][position % 2])
            )
            # Of some rewards the decision was not known, or lies before the log.
            where = [(about.position, about.at), (0, 0.0), (about.position, 7.0)][position % 3]
            events.append(Event(position, at, REWARD, key, about.key, *where, body))
        else:
            body = msgspec.msgpack.encode(decision(rng, declared, position))
            key = decision_key(new_identifier())
            events.append(Event(position, at, DECISION, key, None, 0, 0.0, body))
    return events


def sealed_event(event):
    return SealedEvent.of("page/log", event, event.position - 1)


def page_of(events):
    """The events as a store in SQLite reads them by columns."""
    sealed = [*map(sealed_event, events)]
    records = [record_of(one, packed(one.event.key)) for one in sealed]
    return sealed_columns_of("page/log", b"".join(records))


def by_rows(settings, events):
    writer = SegmentWriter(settings)
    writer.add(events)
    return writer.finish()


def by_columns(settings, page):
    writer = SegmentWriter(settings)
    writer.add_columns(page)
    return writer.finish()


@pytest.mark.parametrize("declared", list(DECLARED))
def test_a_segment_by_columns_is_that_of_single_events(declared, seed):
    settings, events = Settings.of(DECLARED[declared]), log(declared, seed)
    page = page_of(events)
    assert page_tables(settings).of(page) is not None
    data = by_columns(settings, page)
    assert data == by_rows(settings, events)
    reader = SegmentReader(data)
    assert reader.page(0) == events
    assert holds_page(reader, 0, page, page_tables(settings))


def paused(event):
    made = msgspec.msgpack.decode(event.body, type=DecisionMade)
    other = msgspec.structs.replace(made, paused=not made.paused)
    return msgspec.structs.replace(event, body=msgspec.msgpack.encode(other))


CHANGES = {
    "a time": lambda event: msgspec.structs.replace(event, at=5.0),
    "what it is about": lambda event: msgspec.structs.replace(event, about_at=1.0),
    "an id": lambda event: msgspec.structs.replace(event, key=decision_key(new_identifier())),
    "a body": paused,
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_another_event_in_the_store_is_noticed(change, seed):
    settings, events = Settings.of(DECLARED["slots"]), log("slots", seed)
    reader, tables = SegmentReader(by_rows(settings, events)), page_tables(settings)
    events[1] = CHANGES[change](events[1])
    by_column, by_row = page_of(events), SealedColumns.of([*map(sealed_event, events)])
    assert tables.of(by_column) is not None
    assert tables.of(by_row) is None
    assert not holds_page(reader, 0, by_column, tables)
    assert not holds_page(reader, 0, by_row, tables)


def test_a_missing_event_is_noticed(seed):
    settings, events = Settings.of(DECLARED["slots"]), log("slots", seed)
    reader = SegmentReader(by_rows(settings, events))
    assert not holds_page(reader, 0, page_of(events[:-1]), page_tables(settings))


def unusual(event, kind):
    return {
        "an id of the caller": lambda: msgspec.structs.replace(event, key="d visit-1"),
        "a tick": lambda: Event(event.position, event.at, TICK, None, None, 0, 0.0, b""),
        "a longer form of a number": lambda: msgspec.structs.replace(
            event, body=event.body.replace(b"\x9b\x92", b"\x9b\xdc\x00\x02", 1)
        ),
        "a float that is no number": lambda: msgspec.structs.replace(
            event, body=event.body.replace(b"\xcb", b"\xcb\x7f\xf8" + bytes(6) + b"\xcb", 1)
        ),
        "a damaged body": lambda: msgspec.structs.replace(event, body=b"\xff"),
    }[kind]()


@pytest.mark.parametrize(
    "kind",
    [
        "an id of the caller",
        "a tick",
        "a longer form of a number",
        "a float that is no number",
        "a damaged body",
    ],
)
@pytest.mark.parametrize("times", [1, 100])
def test_pages_with_other_events_are_written_from_single_events(kind, times, seed):
    settings, events = Settings.of(DECLARED["slots"]), log("slots", seed)
    assert page_tables(settings).of(page_of(events)) is not None
    chosen = [place for place, event in enumerate(events) if event.kind == DECISION][:times]
    for place in chosen:
        events[place] = unusual(events[place], kind)
    page = page_of(events)
    assert page_tables(settings).of(page) is None
    data = by_columns(settings, page)
    assert data == by_rows(settings, events)
    assert SegmentReader(data).page(0) == events
    assert holds_page(SegmentReader(data), 0, page, page_tables(settings))
