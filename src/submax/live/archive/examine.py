"""Searches the archive of a bandit for damage."""

from collections.abc import Iterator

from submax.core.errors import InputError, one_line
from submax.live.archive.archive import Archive
from submax.live.archive.segments.archived_segment import ArchivedSegment
from submax.live.archive.segments.segment_reader import SegmentReader
from submax.live.log.bandits import log_stream
from submax.live.log.records import DECISION
from submax.live.store.integrity.sealed_event import checksum_of
from submax.live.store.store import Store


def archive_damage(store: Store, name: str, archive: Archive) -> Iterator[str]:
    """A sentence for every segment that is damaged, and for every gap between segments and store.

    ``archive`` has been followed. Every event is restored, and its checksum is computed.
    """
    before: ArchivedSegment | None = None
    for segment in archive.segments:
        where = f"segment {segment.number} of the archive of {name!r}"
        if before is not None and segment.first != before.next:
            yield f"events are missing before {where}"
        try:
            data = store.get_segment(name, segment.file)
            if _contents(name, SegmentReader.of(data, segment, where)) != _recorded(segment):
                yield f"{where} does not have the events that were recorded"
        except InputError as error:
            yield str(error)
        except (ArithmeticError, LookupError, TypeError, ValueError, OSError) as error:
            # The bytes are those that were written, so that only a defect can lead here.
            yield f"{where} cannot be read: {one_line(error)}"
        before = segment
    if before is not None:
        following = store.read(log_stream(name), before.last, 1)
        if not following or following[0].position != before.next:
            yield f"events of {name!r} are missing between its archive and the store"


Contents = tuple[int, int, int, int, bool]
"""The first and the last position, the numbers of events and decisions, and the order."""


def _recorded(segment: ArchivedSegment) -> Contents:
    return segment.first, segment.last, segment.events, segment.decisions, True


def _contents(name: str, reader: SegmentReader) -> Contents:
    stream = log_stream(name)
    first = last = events = decisions = 0
    ordered = True
    for number in range(reader.pages):
        for event in reader.page(number):
            checksum_of(stream, event, last)
            ordered = ordered and event.position > last
            first, last = first or event.position, event.position
            events += 1
            decisions += event.kind == DECISION
    return first, last, events, decisions, ordered
