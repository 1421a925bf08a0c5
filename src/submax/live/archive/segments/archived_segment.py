"""The record of a segment of archived events."""

import msgspec


class ArchivedSegment(msgspec.Struct, frozen=True, gc=False):
    """A segment of the archive of a bandit, as an event of its stream of settings records it.

    ``first`` and ``last`` are positions of its events, and ``next`` is the position of the event
    that followed the last one in the log, so that a gap is found. ``events`` and ``decisions`` are
    counts, ``size`` is in bytes, and ``hash`` is the SHA-256 of all bytes.
    """

    number: int
    first: int
    last: int
    next: int
    events: int
    decisions: int
    size: int
    hash: str

    @property
    def file(self) -> str:
        """The name of the segment, which depends on its contents.

        So a process that does not know that another one archives now cannot overwrite a segment.
        """
        return f"{self.number:010}-{self.hash[:16]}"


def segment_key(number: int) -> str:
    """The key of the event that records a segment; segments are numbered from 1."""
    return f"archived {number}"
