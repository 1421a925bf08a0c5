"""Contract of a store of events."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from os import urandom
from pathlib import Path

from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.columns.sealed_columns import SealedColumns
from submax.live.store.event import AppendResult, Entry, Event
from submax.live.store.integrity.sealed_event import SealedEvent

PAGE = 10_000
"""The most events that one call of ``read`` returns: a few megabytes, read in some milliseconds."""
PROBE, PROBE_BYTES = "probe", 16
"""The name and the size of the blob that ``check_writable`` writes."""


class Store(ABC):
    """Streams of events, which are appended, and named blobs of bytes beside them.

    Positions rise within a stream in the order in which events become visible: a reader that has
    seen position p never misses an event below p. All methods may be called from any thread.
    """

    @abstractmethod
    def append(self, stream: str, entries: Sequence[Entry]) -> "Future[list[AppendResult]]":
        """Write all entries or none; the future is done when the entries are durable.

        If a stream already has an event with the key of an entry, the entry is not written, and its
        result holds the earlier event.
        """

    def appended(self, stream: str) -> int | None:
        """How many times this process has appended to a stream since it opened the store.

        None if other processes may append as well, so that only reading shows what is new.
        """
        return None

    @abstractmethod
    def read(self, stream: str, after: int = 0, limit: int = PAGE) -> list[Event]:
        """The next events of a stream after a position, in order, at most ``limit`` of them.

        There are fewer only if the stream had no more when it was read.
        """

    def read_columns(self, stream: str, after: int = 0, limit: int = PAGE) -> EventColumns:
        """The same events as ``read`` by columns; a store may be faster at this."""
        return EventColumns.of(self.read(stream, after, limit))

    @abstractmethod
    def read_sealed(self, stream: str, after: int, limit: int) -> list[SealedEvent]:
        """Like ``read``, with what shows whether an event was changed or its neighbours lost."""

    def read_sealed_columns(self, stream: str, after: int, limit: int) -> SealedColumns:
        """The same events as ``read_sealed`` by columns; a store may be faster at this."""
        return SealedColumns.of(self.read_sealed(stream, after, limit))

    @abstractmethod
    def find(self, stream: str, key: str) -> Event | None:
        """The event of a stream with this key; None if there is none."""

    @abstractmethod
    def streams(self) -> list[str]:
        """The names of all streams that have events, sorted."""

    @abstractmethod
    def put_blob(self, name: str, data: bytes) -> None:
        """Write a blob, and replace an earlier one of the same name.

        It is durable when the next append that writes an event is, if not before.
        """

    @abstractmethod
    def get_blob(self, name: str) -> bytes | None:
        """The blob of this name; None if there is none."""

    @abstractmethod
    def delete_blob(self, name: str) -> None:
        """Delete the blob of this name, if there is one; as durable as writing it."""

    @abstractmethod
    def delete_events(self, stream: str, up_to: int) -> None:
        """Delete the events of a stream up to a position; their keys can be used again.

        Later events have higher positions than any that was deleted. What is left has no damage:
        the first event after the deleted ones becomes the first one of its stream, and a stream
        without events has no recorded end.
        """

    @abstractmethod
    def delete_blobs(self, prefix: str) -> None:
        """Delete all blobs whose names begin with ``prefix``."""

    def put_segment(self, name: str, segment: str, data: bytes) -> None:
        """Write a segment of the archive of the bandit ``name``, as durable as a blob.

        The name of a segment is unique in its archive, and its data never change.
        """
        self.put_blob(segment_blob(name, segment), data)

    def get_segment(self, name: str, segment: str) -> bytes | None:
        """A segment of the archive of a bandit; None if there is none of this name."""
        return self.get_blob(segment_blob(name, segment))

    def delete_segments(self, name: str) -> None:
        """Delete all segments of the archive of a bandit."""
        self.delete_blobs(segment_blobs(name))

    def shrink(self) -> None:
        """Give the space of deleted events back to the disk, if the store does not do so itself."""
        return

    @abstractmethod
    def try_lead(self, task: str) -> bool:
        """Become the leader of a task if nobody leads it; whether this store leads it now.

        Of all open stores on the same data, at most one leads a task.
        """

    @abstractmethod
    def leads(self, task: str) -> bool:
        """Whether this store leads a task already; it does not try to become the leader."""

    @abstractmethod
    def resign(self, task: str) -> None:
        """Lead a task no longer, if this store leads it, so that another one can."""

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Copy everything that is committed into a new SQLite file; others may go on writing.

        The copy is searched for damage, and gets its name only if there is none.
        """

    @abstractmethod
    def damage(self) -> Iterator[str]:
        """Look at every event and blob, and yield a sentence for everything that was damaged."""

    @property
    def place(self) -> str | None:
        """The path or address at which other processes can read the store; None if they cannot."""
        return None

    def check_writable(self) -> None:
        """Write a small blob in place of the last one; StoreError if the store cannot write now."""
        self.put_blob(PROBE, urandom(PROBE_BYTES))

    @abstractmethod
    def close(self) -> None:
        """Write what is queued and release all resources; a second call does nothing."""


def segment_blobs(name: str) -> str:
    """The beginning of the names of the blobs with the archive of a bandit."""
    return f"{name}/archive/"


def segment_blob(name: str, segment: str) -> str:
    """The name of the blob with a segment of the archive of a bandit."""
    return f"{segment_blobs(name)}{segment}.parquet"


def is_segment(blob: str) -> bool:
    """Whether a blob is a segment of an archive; no other blob has such a name."""
    return blob.split("/")[1:2] == ["archive"]
