"""Conformance suite of stores."""

import contextlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from submax.core.errors import InputError, StoreError
from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.event import AppendResult, Entry, Event
from submax.live.store.sqlite_store import SQLiteStore
from submax.live.store.store import Store
from submax.testing.requirements import require

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


def check_blobs(store: Store) -> None:
    """Check that a blob is what was last put under its name, until it is deleted."""
    require(store.get_blob("blob") is None, store, "a new name has no blob")
    for data in (EVERY_BYTE, b"", b"\0", EVERY_BYTE * 4096):
        store.put_blob("blob", data)
        store.put_blob("other 🦆", data[::-1])
        require(store.get_blob("blob") == data, store, "a blob is what was last put under its name")
        require(
            store.get_blob("other 🦆") == data[::-1],
            store,
            "blobs with different names are different",
        )
    for _ in range(2):
        store.delete_blob("blob")
        require(store.get_blob("blob") is None, store, "a deleted blob is gone")
    require(store.get_blob("other 🦆") is not None, store, "blobs with other names are not deleted")


def check_segments(store: Store) -> None:
    """Check that segments are stored by bandit and name."""
    require(store.get_segment("page", "1") is None, store, "a segment is unknown at first")
    store.put_segment("page", "1", EVERY_BYTE)
    store.put_segment("page", "2", b"2")
    store.put_segment("page-2", "1", b"other")
    store.put_segment("page", "1", EVERY_BYTE)
    require(store.get_segment("page", "1") == EVERY_BYTE, store, "a segment is kept")
    store.shrink()
    require(not list(store.damage()), store, "a store that was shrunk is whole")
    store.delete_segments("page")
    store.delete_segments("never there")
    left = [store.get_segment(*one) for one in (("page", "1"), ("page", "2"), ("page-2", "1"))]
    require(left == [None, None, b"other"], store, "segments are deleted by the name of the bandit")
    store.delete_segments("page-2")


THREADS = 8
APPENDS = 50
KEYS = 120
"""Fewer than appends, so that threads meet at them."""
PAGE = 10


def check_keys_in_threads(store: Store) -> None:
    """Each key once, whoever comes first."""
    with ThreadPoolExecutor(THREADS) as pool:
        written = [each for some in pool.map(_append_keys, [store] * THREADS) for each in some]
    new = Counter(each.event.key for each in written if each.new)
    require(
        new == Counter({f"{number}": 1 for number in range(KEYS)}),
        store,
        "of all threads that append a key, exactly one is told that it is new",
    )
    events = store.read("threads")
    require(len(events) == KEYS, store, "each key of many threads is written exactly once")
    standing = {event.key: event for event in events}
    require(
        all(each.event == standing[each.event.key] for each in written),
        store,
        "all threads are given the event that stands",
    )


def _append_keys(store: Store) -> list[AppendResult]:
    keys = [f"{number % KEYS}" for number in range(3 * APPENDS)]
    return [
        written
        for begin in range(0, len(keys), 3)
        for written in store.append(
            "threads", [Entry("kind", b"", key) for key in keys[begin : begin + 3]]
        ).result()
    ]


def check_polling(store: Store) -> None:
    """A reader sees all, in order and whole appends, while threads write."""
    with ThreadPoolExecutor(THREADS) as pool:
        writers = [pool.submit(_append_pairs, store, number) for number in range(THREADS)]
        seen = _polled(store, writers)
        returned = [event for writer in writers for event in writer.result()]
    require(seen == store.read("polling"), store, "a reader that polls misses nothing")
    require(
        seen == sorted(returned, key=lambda event: event.position),
        store,
        "a reader sees what the writers were told, in the order of positions",
    )


def _append_pairs(store: Store, writer: int) -> list[Event]:
    entries = [Entry("kind", b"", f"{writer} {number}") for number in range(2 * APPENDS)]
    return [
        written.event
        for begin in range(0, len(entries), 2)
        for written in store.append("polling", entries[begin : begin + 2]).result()
    ]


def _polled(store: Store, writers: "list[Future[list[Event]]]") -> list[Event]:
    seen: list[Event] = []
    writing = True
    while writing:
        # Asked before the last look, which then sees all.
        writing = not all(writer.done() for writer in writers)
        while page := store.read("polling", seen[-1].position if seen else 0, PAGE):
            require(len(page) % 2 == 0, store, "the entries of an append become visible together")
            seen += page
    return seen


def check_store(make: Callable[[], Store], *, forgets: bool = False) -> None:
    """Raise an AssertionError where a store breaks its contract.

    Each call of ``make`` opens the same store, empty at first, anew. ``forgets`` is for a store
    that lives as long as its object: closing it may then do nothing.
    """
    for check in (
        check_append,
        check_keys,
        check_about,
        check_texts,
        check_paging,
        check_streams,
        check_blobs,
        _check_giving_up,
        _check_deleting,
        _check_sealed,
        check_segments,
        _check_lead,
        check_keys_in_threads,
        check_polling,
        _check_backup,
    ):
        store = make()
        try:
            check(store)
        finally:
            store.close()
    _check_reopening(make)
    if not forgets:
        _check_closed(make())


def _check_giving_up(store: Store) -> None:
    for number in range(20):
        store.append("giving up", [Entry("kind", b"%d" % number)]).cancel()
    (last,) = append_now(store, "giving up", Entry("kind", b"last"))
    require(
        store.read("giving up")[-1:] == [last.event],
        store,
        "a caller that gives up its append does not stop the store",
    )


def _check_deleting(store: Store) -> None:
    written = append_now(store, "delete", *(Entry("kind", b"%d" % n, f"k{n}") for n in range(5)))
    (other,) = append_now(store, "delete not", Entry("kind", b"", "k0"))
    for name in ("delete/a", "delete/b", "delete%b", "Delete/a"):
        store.put_blob(name, b"1")
    store.delete_events("delete", written[2].event.position)
    store.delete_events("never there", written[2].event.position)
    rest = [each.event for each in written[3:]]
    require(store.read("delete") == rest, store, "events up to a position are deleted, and no more")
    require(store.read("delete not") == [other.event], store, "other streams keep their events")
    require(store.find("delete", "k0") is None, store, "the key of a deleted event is unknown")
    (again,) = append_now(store, "delete", Entry("kind", b"", "k0"))
    require(again.new, store, "the key of a deleted event can be used again")
    require(
        positions_rise([*rest, again.event]),
        store,
        "positions of deleted events are not used again",
    )
    require(not list(store.damage()), store, "the events that are left follow each other")
    store.delete_events("delete", again.event.position)
    require("delete" not in store.streams(), store, "a stream without events is not listed")
    require(not list(store.damage()), store, "a stream that was deleted is no damage")
    store.delete_blobs("delete/")
    left = [store.get_blob(name) for name in ("delete/a", "delete/b", "delete%b", "Delete/a")]
    require(left == [None, None, b"1", b"1"], store, "blobs are deleted by the exact prefix")


def _check_sealed(store: Store) -> None:
    require(store.read_sealed("sealed", 0, 9) == [], store, "an empty stream has no sealed events")
    written = append_now(store, "sealed", *(Entry("kind", b"%d" % n, f"k{n}") for n in range(5)))
    append_now(store, "not sealed", Entry("kind", b""))
    events = [each.event for each in written]
    sealed = store.read_sealed("sealed", 0, ALL)
    require([one.event for one in sealed] == events, store, "sealed events are those of the stream")
    require(all(one.whole for one in sealed), store, "sealed events have their checksums")
    links = [one.previous for one in sealed]
    positions = [0, *(event.position for event in events)]
    require(links == positions[:-1], store, "a sealed event knows the one before it")
    middle = store.read_sealed("sealed", events[1].position, 2)
    require(middle == sealed[2:4], store, "sealed events are read by pages")
    columns = store.read_sealed_columns("sealed", events[0].position, 3)
    require(
        columns.listed() == events[1:4]
        and columns.columns.listed() == EventColumns.of(events[1:4]).listed()
        and columns.previous.tolist() == links[1:4]
        and bool(columns.whole.all()),
        store,
        "columns of sealed events hold the same events",
    )
    none = store.read_sealed_columns("sealed", events[-1].position, 3)
    require(len(none) == 0, store, "there are no sealed events after the last one")


def _check_lead(store: Store) -> None:
    require(
        store.try_lead("matter") and store.try_lead("matter") and store.try_lead("other matter"),
        store,
        "the only store that is open leads, each time it is asked",
    )
    require(store.leads("matter"), store, "a store that leads says so")
    store.resign("other matter")
    store.resign("never led")
    require(store.try_lead("other matter"), store, "a store that has resigned can lead again")


def _check_backup(store: Store) -> None:
    append_now(store, "backup", Entry("a", b"1", "k"), Entry("b", EVERY_BYTE, "l", "k"))
    store.put_blob("backup", EVERY_BYTE)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "copy.db"
        store.backup(path)
        copy = SQLiteStore(path)
        try:
            require(copy.streams() == store.streams(), store, "a backup has all streams")
            for stream in store.streams():
                same = copy.read(stream, limit=ALL) == store.read(stream, limit=ALL)
                require(same, store, "a backup has all events, in their places")
            require(copy.get_blob("backup") == EVERY_BYTE, store, "a backup has what was kept")
            (written,) = append_now(copy, "backup", Entry("c", b"", "m"))
            later = written.event.position > store.read("backup")[-1].position
            require(later, store, "a backup goes on behind the last position")
        finally:
            copy.close()
        with contextlib.suppress(InputError):
            store.backup(path)
            require(False, store, "a backup does not write over a file")


def _check_reopening(make: Callable[[], Store]) -> None:
    store = make()
    written = append_now(store, "reopening", Entry("kind", b"1", "k"), Entry("kind", b"2"))
    last = store.append("reopening", [Entry("kind", b"3")])
    store.put_blob("reopening", EVERY_BYTE)
    before = {name: store.read(name) for name in store.streams()}
    store.close()
    store.close()
    events = [each.event for each in (*written, *last.result())]
    again = make()
    try:
        require(again.read("reopening") == events, again, "closing writes all that was begun")
        after = {name: again.read(name) for name in again.streams()}
        before["reopening"] = events
        require(before == after, again, "a store that is opened again shows the same events")
        require(again.get_blob("reopening") == EVERY_BYTE, again, "data are kept when it is closed")
        (repeated,) = append_now(again, "reopening", Entry("kind", b"4", "k"))
        require(
            repeated == AppendResult(events[0], new=False), again, "keys are known when reopened"
        )
        require(again.try_lead("matter"), again, "a store that was closed no longer leads")
    finally:
        again.close()


def _check_closed(store: Store) -> None:
    store.close()
    uses: dict[str, Callable[[], object]] = {
        "an append": lambda: append_now(store, "closed", Entry("kind", b"")),
        "keeping": lambda: store.put_blob("closed", b""),
        "reading": lambda: store.read("closed"),
    }
    for rule, use in uses.items():
        try:
            use()
        except StoreError as error:
            require("closed" in str(error), store, f"{rule} after closing says that it is closed")
        else:
            require(False, store, f"{rule} after closing is refused by StoreError")


@dataclass
class ManualClock:
    """A clock that stands until ``now`` is set: ``submax.open(..., clock=ManualClock())``."""

    now: float = 1e9

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self.now
