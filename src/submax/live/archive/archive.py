"""The archived events of a bandit."""

from bisect import bisect_left
from collections import OrderedDict

import msgspec

from submax.core.decoding import known_type
from submax.live.archive.segments.archived_segment import ArchivedSegment, segment_key
from submax.live.archive.segments.segment_reader import SegmentReader
from submax.live.log.bandits import settings_stream
from submax.live.log.pages.log_page import LogPage
from submax.live.store.event import Event
from submax.live.store.store import Store

OPEN_SEGMENTS = 2
"""Segments whose bytes are held in memory: a ledger reads the log at two places. Each has about
7 MB with 20 numbers in a context."""
OPEN_PAGES = 3
"""Pages of events that are held in memory, each of some megabytes."""


class Archive:
    """The segments of a bandit, and the events in them.

    A segment is recorded by an event of the stream of settings, which has its number in its key.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self.segments: list[ArchivedSegment] = []
        self._readers: OrderedDict[int, SegmentReader] = OrderedDict()
        self._pages: OrderedDict[tuple[int, int], LogPage] = OrderedDict()

    @property
    def end(self) -> int:
        """The position up to which events are archived, as far as this object knows; 0 if none."""
        return self.segments[-1].last if self.segments else 0

    def follow(self) -> None:
        """Learn about segments that are new."""
        stream = settings_stream(self._name)
        while event := self._store.find(stream, segment_key(len(self.segments) + 1)):
            self.segments.append(
                msgspec.msgpack.decode(event.body, type=known_type(ArchivedSegment))
            )

    def read(self, after: int) -> list[Event]:
        """Some events after a position, in order; at least one if ``after`` is below ``end``."""
        segment, number = self._place(after)
        page = self.reader(segment).page(number)
        return page[bisect_left(page, after + 1, key=lambda event: event.position) :]

    def read_page(self, after: int) -> LogPage:
        """The page with the first event after a position, which must be below ``end``."""
        segment, number = self._place(after)
        which = segment.number, number
        found = self._pages.get(which)
        if found is None:
            found = self._pages[which] = self.reader(segment).log_page(number)
            if len(self._pages) > OPEN_PAGES:
                self._pages.popitem(last=False)
        self._pages.move_to_end(which)
        return found

    def close(self) -> None:
        """Drop the open segments and pages, which are read again when they are needed."""
        self._readers.clear()
        self._pages.clear()

    def _place(self, after: int) -> tuple[ArchivedSegment, int]:
        """The segment and the number of the page with the first event after a position."""
        place = bisect_left(self.segments, after + 1, key=lambda segment: segment.last)
        segment = self.segments[place]
        return segment, self.reader(segment).page_after(after)

    def reader(self, segment: ArchivedSegment) -> SegmentReader:
        """Open a segment; an ``InputError`` if it is missing or damaged."""
        found = self._readers.get(segment.number)
        if found is None:
            data = self._store.get_segment(self._name, segment.file)
            where = f"segment {segment.number} of the archive of {self._name!r}"
            found = self._readers[segment.number] = SegmentReader.of(data, segment, where)
            if len(self._readers) > OPEN_SEGMENTS:
                self._readers.popitem(last=False)
        self._readers.move_to_end(segment.number)
        return found
