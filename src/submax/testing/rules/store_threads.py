"""What a store must do when many threads use it at once."""

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor

from submax.live.store.event import AppendResult, Entry, Event
from submax.live.store.store import Store
from submax.testing.rules.require import require

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
