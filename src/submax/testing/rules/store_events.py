"""Rules of a store about its events."""

from itertools import pairwise

from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.event import AppendResult, Entry, Event
from submax.live.store.store import Store
from submax.testing.rules.require import require

EVERY_BYTE = bytes(range(256))
TEXTS = ("", "a", "A", "ä", "a\u0308", "日本語", "🦆", "'; --", "%s {}", " a", "a\n")
"""All different, whatever a database thinks of letters."""
PATIENCE_SECONDS = 60.0
"""An append that takes longer fails."""
ALL = 1_000_000
"""More events than a stream of these rules has."""


def append_now(store: Store, stream: str, *entries: Entry) -> list[AppendResult]:
    """Append entries, and wait until they are durable."""
    return store.append(stream, entries).result(PATIENCE_SECONDS)


def check_append(store: Store) -> None:
    """An append writes entries in order, and what is read is what was written."""
    require(store.read("append") == [], store, "a stream without events is empty")
    entries = [Entry("kind", EVERY_BYTE[: 100 * size]) for size in range(3)]
    written = append_now(store, "append", *entries) + append_now(store, "append", entries[2])
    events = [each.event for each in written]
    require(all(each.new for each in written), store, "entries without keys are always new")
    require(
        [event.body for event in events] == [entry.body for entry in (*entries, entries[2])],
        store,
        "an append returns its entries in order",
    )
    require(positions_rise(events), store, "positions rise, and times do not fall")
    require(store.read("append") == events, store, "what is read is what was returned")
    columns = store.read_columns("append").listed()
    require(columns == EventColumns.of(events).listed(), store, "columns hold the same events")
    require(append_now(store, "append") == [], store, "an append of nothing returns nothing")


def positions_rise(events: list[Event]) -> bool:
    """Whether positions rise, and times do not fall."""
    return events[0].position > 0 and all(
        first.position < second.position and first.at <= second.at
        for first, second in pairwise(events)
    )


def check_keys(store: Store) -> None:
    """A key is written once in a stream."""
    first, again = append_now(store, "keys", Entry("a", b"1", "k"), Entry("b", b"2", "k"))
    (later,) = append_now(store, "keys", Entry("c", b"3", "k"))
    (other,) = append_now(store, "other keys", Entry("d", b"4", "k"))
    require(first.new and first.event.body == b"1", store, "the first entry with a key is new")
    for repeated in (again, later):
        require(
            repeated == AppendResult(first.event, new=False),
            store,
            "an entry whose key is there gives the event that stands, and is not new",
        )
    require(store.read("keys") == [first.event], store, "a key is written once")
    require(other.new and other.event.body == b"4", store, "keys are those of one stream")
    require(store.find("keys", "k") == first.event, store, "an event is found by its key")
    require(store.find("keys", "other") is None, store, "an unknown key finds nothing")
    require(store.find("none", "k") is None, store, "an unknown stream finds nothing")


def check_about(store: Store) -> None:
    """An event knows the event that it is about, if that was there before it."""
    entries = (
        Entry("early", b"", "early", "late"),
        Entry("about", b"", "about early", "early"),
        Entry("about", b"", None, "nothing"),
        Entry("about", b"", None, None),
    )
    early, within, *unknown = (each.event for each in append_now(store, "about", *entries))
    (later,) = (each.event for each in append_now(store, "about", Entry("a", b"", "late", "early")))
    (elsewhere,) = (
        each.event for each in append_now(store, "else", Entry("a", b"", None, "early"))
    )
    for event in (within, later):
        require(
            (event.about, event.about_position, event.about_at)
            == ("early", early.position, early.at),
            store,
            "an entry about another knows where and when that was written, in one append too",
        )
    for event in (early, *unknown, elsewhere):
        require(
            (event.about_position, event.about_at) == (0, 0.0),
            store,
            "what an entry is about is at 0 where it had not been written in the stream",
        )
    require(
        store.read("about") == [early, within, *unknown, later],
        store,
        "what an entry is about stays as it was when it was written",
    )


def check_texts(store: Store) -> None:
    """Texts of all kinds are kept apart."""
    for stream in TEXTS[1:]:
        written = append_now(store, stream, *(Entry(text, text.encode(), text) for text in TEXTS))
        events = [each.event for each in written]
        require(all(each.new for each in written), store, "different texts are different keys")
        require(store.read(stream) == events, store, "texts are read as they were written")
        require(
            [store.find(stream, text) for text in TEXTS] == events,
            store,
            "every text is found as a key",
        )


def check_paging(store: Store) -> None:
    """Pages hold every event once, in order."""
    names = ("first page", "second page")
    wanted: dict[str, list[Event]] = {name: [] for name in names}
    for number in range(12):
        name = names[number % 2]
        entries = [Entry("page", b"%d" % number)] * (number + 1)
        wanted[name] += [each.event for each in append_now(store, name, *entries)]
    for name in names:
        for limit in (1, 5, len(wanted[name]), 1000):
            require(
                paged(store, name, limit) == wanted[name],
                store,
                f"pages of {limit} give every event once and in order",
            )


def paged(store: Store, stream: str, limit: int) -> list[Event]:
    """Return the events of a stream, read by pages."""
    events: list[Event] = []
    sizes = [limit]
    while page := store.read(stream, events[-1].position if events else 0, limit):
        require(len(page) <= limit, store, "a page holds no more than its limit")
        require(sizes[-1] == limit, store, "only the last page holds less than its limit")
        sizes.append(len(page))
        events += page
    return events


def check_streams(store: Store) -> None:
    """The streams that have events are listed."""
    names = ("streams b", "streams a", "streams B", "streams ä", "streams Z")
    for name in names:
        append_now(store, name, Entry("kind", b""))
    streams = store.streams()
    require(set(names) <= set(streams), store, "a stream with events is among the streams")
    require(streams == sorted(set(streams)), store, "streams are sorted, each named once")
