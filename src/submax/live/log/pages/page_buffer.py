"""Pages of a log that the second reader of a ledger has not finished."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from submax.live.log.pages.log_page import LogPage

MAX_EVENTS = 30_000
"""Events that are kept decoded, about 1 kB each if a context has 20 numbers. If the second reader
is further behind, it reads its events from the store again."""
Unsettled = tuple[int, float, str, str, Any]
"""Position, time, kind, id and body of an event, as in ``LogPage``."""


class PageBuffer:
    """The events after the last settled one, without a gap, as far as they are in memory.

    ``head`` is the first of them, or None if ``fill`` must be called to find it. ``add`` takes
    pages of the first reader, so that they are not read and decoded twice. ``read`` reads the next
    page after a position.
    """

    def __init__(self, read: Callable[[int], LogPage]) -> None:
        self._read = read
        self._pages: deque[LogPage] = deque()
        self._events: Iterator[Unsettled] = iter(())
        self.head: Unsettled | None = None
        self._last: int | None = None

    def takes(self, settled: int, after: int) -> bool:
        """Whether the page after a position can be added, if all up to ``settled`` is settled."""
        last = settled if self.head is None and not self._pages else self._last
        return last == after and sum(map(len, self._pages)) < MAX_EVENTS

    def add(self, page: LogPage) -> None:
        """Keep the page after the last one."""
        self._pages.append(page)
        self._last = page.position[-1]

    def fill(self, settled: int) -> Unsettled | None:
        """Return the next event after ``settled``, which becomes the ``head``; None without one."""
        while self.head is None:
            if not self._pages:
                page = self._read(settled)
                if not len(page):
                    return None
                self.add(page)
            self._begin(self._pages.popleft())
        return self.head

    def advance(self) -> None:
        """Go on after the head; at the end of a page, ``fill`` finds the next event."""
        self.head = next(self._events, None)

    def _begin(self, page: LogPage) -> None:
        self._events = iter(
            zip(page.position, page.at, page.kind, page.identifier, page.body, strict=True)
        )
        self.head = next(self._events, None)
