"""Moves old events of a bandit from its store into its archive."""

import hashlib
import math
from collections.abc import Callable, Generator, Iterator

import msgspec
import numpy as np

from submax.bandit.settings import Settings
from submax.core.errors import ConflictError, InputError
from submax.live.archive.archive import Archive
from submax.live.archive.page_check import holds_page
from submax.live.archive.page_table import page_tables
from submax.live.archive.segments.archived_segment import ArchivedSegment, segment_key
from submax.live.archive.segments.segment_reader import SegmentReader
from submax.live.archive.segments.segment_writer import SegmentWriter
from submax.live.log.bandits import log_stream, settings_stream
from submax.live.log.ledger import Ledger
from submax.live.log.pages.collection_pause import collection_pause
from submax.live.log.records import ARCHIVED, DECISION
from submax.live.store.columns.event_kinds import DECISION_KIND, OTHER_KIND
from submax.live.store.columns.sealed_columns import SealedColumns
from submax.live.store.event import Entry
from submax.live.store.store import Store

SEGMENT_EVENTS = 65_536
"""The most events in a segment: a file of some megabytes, and 1,500 files for 10⁸ events."""
PAGE_EVENTS = 4096
"""Events that are encoded in one step, and restored together: some megabytes."""
DELETED_EVENTS = 1000
"""Events that are deleted in one transaction, so that decisions wait some milliseconds at most."""

END = object()
"""What ``next`` returns if no step is left."""
Encoded = tuple[ArchivedSegment, bytes]
"""The record of a segment, and its bytes."""


class Compaction:
    """Moves events that are settled, and were written up to the time ``before``, into the archive.

    A segment is written, read back and compared with the store; then it is recorded; then its
    events are deleted from the store. If the process ends on the way, no event is lost: what was
    not recorded is in the store, and what was recorded is read from the archive, even while it is
    in both. The next compaction deletes what was left.

    ``ledger`` says which decisions are settled. If ``reward_wait`` is 0 and there is no
    ``no_reward_after``, a decision without a reward is never settled; it is archived nevertheless.
    The last event of a log stays in the store. Segments with fewer than ``fewest`` events are not
    written. ``may_write`` is asked before anything is written.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        settings: Settings,
        ledger: Ledger,
        before: float,
        fewest: int = 1,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store, self._name, self._settings = store, name, settings
        self._before, self._fewest, self._may_write = before, fewest, may_write
        waits = settings.longest_wait < math.inf
        self._up_to = ledger.settled if waits else ledger.read_position
        self._stream = log_stream(name)
        self.archive = Archive(store, name)
        self.written: list[ArchivedSegment] = []

    def run(self) -> None:
        """Move everything that is old enough."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Move everything that is old enough, and yield after every part of the work."""
        steps = self._steps()
        going = True
        while going:
            with collection_pause():
                going = next(steps, END) is not END
            if going:
                yield

    def _steps(self) -> Iterator[None]:
        self.archive.follow()
        yield from self._delete()
        while True:
            found = yield from self._encoded()
            if found is None or not self._may_write():
                return
            segment, data = found
            self._store.put_segment(self._name, segment.file, data)
            yield
            yield from self._verify(segment)
            if not self._may_write():
                return
            self._record(segment)
            self.written.append(segment)
            yield from self._delete()

    def estimate(self) -> ArchivedSegment | None:
        """The first segment that would be written; None if no event can be moved."""
        self.archive.follow()
        steps = self._encoded()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return None if end.value is None else end.value[0]

    def movable(self) -> Iterator[SealedColumns]:
        """Pages of the events that can be moved; a damaged event raises an ``InputError``."""
        after = self.archive.end
        while True:
            # One event more than the page has: the event that follows the last one.
            sealed = self._store.read_sealed_columns(self._stream, after, PAGE_EVENTS + 1)
            self._check(sealed, after)
            position, at = sealed.columns.position[:-1], sealed.columns.at[:-1]
            stays = ((position > self._up_to) | (at > self._before)).nonzero()[0]
            old = int(stays[0]) if len(stays) else len(position)
            if old:
                yield sealed.until(old)
            if old < PAGE_EVENTS:
                return
            after = int(position[-1])

    def _check(self, sealed: SealedColumns, after: int) -> None:
        """Refuse to archive an event that was changed, or one whose neighbour is lost."""
        if not len(sealed):
            return
        position = sealed.columns.position
        expected = np.concatenate([[after], position[:-1]])
        good = sealed.whole & (sealed.previous == expected) & (position > expected)
        if after == self.archive.end:
            # The first event that is left in the store was sealed as the first of its stream.
            following = self.archive.segments[-1].next if after else position[0]
            is_first = sealed.previous[0] in (after, 0) and position[0] == following
            good[0] = sealed.whole[0] and is_first
        if not good.all():
            raise InputError(
                f"event {position[~good][0]} of {self._name!r} is damaged or does not follow the "
                "one before it, and only whole events are archived: run submax doctor, and restore "
                "a backup"
            )

    def _encoded(self) -> Generator[None, None, Encoded | None]:
        """Encode the next segment; None if too few events are old enough."""
        writer: SegmentWriter | None = None
        events = decisions = first = last = 0
        for page in self.movable():
            # Made for the first page, since pyarrow, which takes memory, may never be needed.
            writer = writer or SegmentWriter(self._settings)
            writer.add_columns(page)
            position = page.columns.position
            first, last = first or int(position[0]), int(position[-1])
            events += len(page)
            decisions += _decisions(page)
            yield
            if events >= SEGMENT_EVENTS:
                break
        if writer is None or events < self._fewest:
            return None
        following = self._store.read(self._stream, last, 1)[0].position
        data = writer.finish()
        number, hashed = len(self.archive.segments) + 1, hashlib.sha256(data).hexdigest()
        counts = events, decisions, len(data)
        return ArchivedSegment(number, first, last, following, *counts, hashed), data

    def _verify(self, segment: ArchivedSegment) -> Iterator[None]:
        """Read a segment back, and compare its events with those in the store."""
        data = self._store.get_segment(self._name, segment.file)
        reader = SegmentReader.of(data, segment, f"the new segment of {self._name!r}")
        after, tables = self.archive.end, page_tables(self._settings)
        for number in range(reader.pages):
            count = reader.events_of_page(number)
            page = self._store.read_sealed_columns(self._stream, after, count)
            if not holds_page(reader, number, page, tables):
                raise InputError(
                    f"the new segment of {self._name!r} does not hold the events of the store, so "
                    "that nothing was deleted: check the disk and the memory of this machine"
                )
            after = reader.ends[number]
            yield

    def _record(self, segment: ArchivedSegment) -> None:
        entry = Entry(ARCHIVED, msgspec.msgpack.encode(segment), segment_key(segment.number))
        (written,) = self._store.append(settings_stream(self._name), [entry]).result()
        if not written.new:
            raise ConflictError(
                f"another process wrote segment {segment.number} of {self._name!r} first, and one "
                "process at a time may: let the one that fits versions archive"
            )
        self.archive.follow()

    def _delete(self) -> Iterator[None]:
        """Delete the archived events from the store, some at a time."""
        first = self._store.read(self._stream, 0, 1)
        if not first or first[0].position > self.archive.end:
            return
        # The events of a segment are deleted before the next one is recorded.
        positions = self.archive.reader(self.archive.segments[-1]).positions()
        for position in [*positions[DELETED_EVENTS - 1 :: DELETED_EVENTS], self.archive.end]:
            if position >= first[0].position:
                self._store.delete_events(self._stream, position)
                yield


def _decisions(page: SealedColumns) -> int:
    """How many events of a page are decisions, with or without a key."""
    if (page.columns.kind == OTHER_KIND).any():
        return sum(event.kind == DECISION for event in page.listed())
    return int((page.columns.kind == DECISION_KIND).sum())
