"""Conformance suite of stores."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from submax.core.errors import InputError, StoreError
from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.event import AppendResult, Entry
from submax.live.store.sqlite_store import SQLiteStore
from submax.live.store.store import Store
from submax.testing.rules.require import require
from submax.testing.rules.store_blobs import check_blobs, check_segments
from submax.testing.rules.store_events import (
    ALL,
    EVERY_BYTE,
    append_now,
    check_about,
    check_append,
    check_keys,
    check_paging,
    check_streams,
    check_texts,
    positions_rise,
)
from submax.testing.rules.store_threads import check_keys_in_threads, check_polling


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
