"""A store in memory, which ends with the process."""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock

from submax.live.archive.segments.copy_segments import copy_segments
from submax.live.store.copy_file import write_copy
from submax.live.store.event import AppendResult, Entry, Event
from submax.live.store.integrity.damage import blob_checksum
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.store import PAGE, Store, is_segment


@dataclass
class MemoryStore(Store):
    """Lists and dictionaries: for bandits in memory, for tests and for trying things out."""

    clock: Callable[[], float] = time.time
    _events: dict[str, list[Event]] = field(default_factory=dict, init=False)
    _keys: dict[tuple[str, str], Event] = field(default_factory=dict, init=False)
    _blobs: dict[str, bytes] = field(default_factory=dict, init=False)
    _position: int = field(default=0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def append(self, stream: str, entries: Sequence[Entry]) -> "Future[list[AppendResult]]":
        future: Future[list[AppendResult]] = Future()
        with self._lock:
            future.set_result([self._write(stream, entry) for entry in entries])
        return future

    def _write(self, stream: str, entry: Entry) -> AppendResult:
        if entry.key is not None and (stream, entry.key) in self._keys:
            return AppendResult(self._keys[stream, entry.key], new=False)
        about = None if entry.about is None else self._keys.get((stream, entry.about))
        self._position += 1
        event = Event(
            self._position,
            self.clock(),
            entry.kind,
            entry.key,
            entry.about,
            about.position if about else 0,
            about.at if about else 0.0,
            entry.body,
        )
        self._events.setdefault(stream, []).append(event)
        if entry.key is not None:
            self._keys[stream, entry.key] = event
        return AppendResult(event, new=True)

    def read(self, stream: str, after: int = 0, limit: int = PAGE) -> list[Event]:
        with self._lock:
            events = self._events.get(stream, [])
            begin = bisect_right(events, after, key=lambda event: event.position)
            return events[begin : begin + limit]

    def read_sealed(self, stream: str, after: int, limit: int) -> list[SealedEvent]:
        with self._lock:
            events = self._events.get(stream, [])
            begin = bisect_right(events, after, key=lambda event: event.position)
            previous = events[begin - 1].position if begin else 0
            sealed = []
            for event in events[begin : begin + limit]:
                sealed.append(SealedEvent.of(stream, event, previous))
                previous = event.position
            return sealed

    def delete_events(self, stream: str, up_to: int) -> None:
        with self._lock:
            events = self._events.get(stream, [])
            end = bisect_right(events, up_to, key=lambda event: event.position)
            for event in events[:end]:
                if event.key is not None:
                    del self._keys[stream, event.key]
            del events[:end]
            if not events:
                self._events.pop(stream, None)

    def contents(self) -> list[tuple[str, Event]]:
        """All events with their streams, in order of their positions."""
        with self._lock:
            events = [(name, event) for name, page in self._events.items() for event in page]
            return sorted(events, key=lambda one: one[1].position)

    def find(self, stream: str, key: str) -> Event | None:
        return self._keys.get((stream, key))

    def streams(self) -> list[str]:
        return sorted(self._events)

    def put_blob(self, name: str, data: bytes) -> None:
        self._blobs[name] = data

    def get_blob(self, name: str) -> bytes | None:
        return self._blobs.get(name)

    def delete_blob(self, name: str) -> None:
        self._blobs.pop(name, None)

    def delete_blobs(self, prefix: str) -> None:
        for name in [name for name in self._blobs if name.startswith(prefix)]:
            del self._blobs[name]

    def try_lead(self, task: str) -> bool:
        return True

    def leads(self, task: str) -> bool:
        """True: no other process can use a store in memory."""
        return True

    def resign(self, task: str) -> None:
        """Do nothing: no other process can lead."""

    def backup(self, path: Path) -> None:
        blobs = [(name, data, blob_checksum(name, data)) for name, data in self._blobs.items()]
        blobs = [blob for blob in blobs if not is_segment(blob[0])]
        finish = partial(copy_segments, self, path)
        ends = {stream: events[-1].position for stream, events in self._events.items()}
        write_copy(path, "the store in memory", self._sealed(), ends, blobs, finish)

    def _sealed(self) -> Iterator[SealedEvent]:
        last: dict[str, int] = {}
        for stream, event in self.contents():
            yield SealedEvent.of(stream, event, last.get(stream, 0))
            last[stream] = event.position

    def damage(self) -> Iterator[str]:
        """Nothing: memory is not searched."""
        return iter(())

    def close(self) -> None:
        """Do nothing: the events stay, so that a bandit can be opened on this store again."""
