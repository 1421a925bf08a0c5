"""Contract of a store."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from submax.live.store.event import Entry, Event, Written

PAGE = 10_000
"""Events read at a time."""


class Store(ABC):
    """Streams of events that are only ever appended to, and named pieces of data beside them.

    Positions rise within a stream in the order in which events become visible: a reader that has
    seen position p never misses an event below it. All methods may be called from any thread.
    """

    @abstractmethod
    def append(self, stream: str, entries: Sequence[Entry]) -> "Future[list[Written]]":
        """Write entries, all or none; the future is done when they are durable.

        An entry whose key is already there is not written again: the event that stands is
        returned in its place.
        """

    @abstractmethod
    def read(self, stream: str, after: int = 0, limit: int = PAGE) -> list[Event]:
        """The next events behind a position, in order."""

    @abstractmethod
    def find(self, stream: str, key: str) -> Event | None:
        """The event with this key."""

    @abstractmethod
    def streams(self) -> list[str]:
        """The names of all streams that have events, sorted."""

    @abstractmethod
    def keep(self, name: str, data: bytes) -> None:
        """Put data under a name, in place of what was there; durable on return."""

    @abstractmethod
    def kept(self, name: str) -> bytes | None:
        """The data under a name."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Forget the data under a name, if there are any."""

    @abstractmethod
    def lead(self, name: str, *, take: bool = True) -> bool:
        """Whether this store leads in a matter; at most one of all that are open does.

        Without ``take`` it does not begin to.
        """

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Copy all that is committed into a new file, as a store by SQLite; others may go on."""

    @abstractmethod
    def close(self) -> None:
        """Finish what was begun and let go; a second call does nothing."""
