"""The second reader of a ledger, which settles decisions when their time has come."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.live.log.decisions.decided_rows import DecidedRows
from submax.live.log.log_clock import LogClock

MAX_BYTES = 32_000_000
"""The most bytes of pages that are kept: 250,000 decisions if a context has 20 numbers. If the
second reader is further behind, it reads its events from the store again."""
PAGE_BYTES = 2000
"""Bytes of memory of a page in addition to those of its arrays' values."""


class WaitingPage(NamedTuple):
    """Positions and times of the events of a page, ``[n]``, and its decisions.

    ``decisions`` are the places of the decisions, in the order of ``rows``.
    """

    position: NDArray[np.int64]
    at: Floats
    decisions: NDArray[np.int64]
    rows: DecidedRows

    @property
    def nbytes(self) -> int:
        """The memory that the page takes."""
        arrays = self.position.nbytes + self.at.nbytes + self.decisions.nbytes
        return PAGE_BYTES + arrays + self.rows.nbytes


class Settled(NamedTuple):
    """Events that are settled while the first reader processes some events.

    ``position`` are their positions and ``before`` the places of the first reader's events just
    before which they are settled, both ``[n]`` and rising. ``decisions`` are the places in
    ``position`` of those that are decisions, in the order of ``rows``. ``last`` is the position
    that was settled before all of these.
    """

    last: int
    position: NDArray[np.int64]
    before: NDArray[np.int64]
    decisions: NDArray[np.int64]
    rows: DecidedRows


class SecondReader:
    """Follows the first reader ``wait`` seconds behind; ``settled`` is the position it has reached.

    ``add`` takes pages of the first reader, so that they are not read and decoded twice. ``read``
    reads the page with the next event after a position. ``clock`` is the time at ``settled``.
    """

    def __init__(self, read: Callable[[int], WaitingPage], wait: float) -> None:
        self.settled, self.clock = 0, LogClock()
        self._read, self._wait = read, wait
        self._pages: deque[WaitingPage] = deque()
        self._bytes, self._next = 0, 0

    def takes(self, after: int) -> bool:
        """Whether the page of events after a position is to be added."""
        last = self._pages[-1].position[-1] if self._pages else self.settled
        return self._wait < math.inf and bool(last == after) and self._bytes < MAX_BYTES

    def add(self, page: WaitingPage) -> None:
        """Keep the page after the last one."""
        self._pages.append(page)
        self._bytes += page.nbytes

    def due(self, before: int) -> float:
        """When the next event is settled; never if its position is not below ``before``."""
        page = self._page() if self._wait < math.inf else None
        if page is None or page.position[self._next] >= before:
            return math.inf
        return self.clock.would_be(float(page.at[self._next])) + self._wait

    def settle(self, now: Floats, position: NDArray[np.int64]) -> Iterator[Settled]:
        """Settle what is due while the first reader processes events, page by page.

        ``now`` and ``position`` are the times elapsed and the positions at these events.
        """
        while self.due(int(position[-1])) <= now[-1]:
            page = self._pages[0]
            begin = self._next
            elapsed = self.clock.along(page.at[begin:])
            # An event is settled before the first later event at which its time has come.
            before = np.maximum(
                np.searchsorted(now, elapsed + self._wait, "left"),
                np.searchsorted(position, page.position[begin:], "right"),
            )
            count = int(np.searchsorted(before, len(now), "left"))
            end, last = begin + count, self.settled
            self.clock.move_to(elapsed[count - 1], page.at[end - 1])
            self.settled, self._next = int(page.position[end - 1]), end
            first, stop = np.searchsorted(page.decisions, [begin, end])
            yield Settled(
                last,
                page.position[begin:end],
                before[:count],
                page.decisions[first:stop] - begin,
                page.rows.take(slice(first, stop)),
            )

    def _page(self) -> WaitingPage | None:
        """The page with the next event, which is at ``_next``; None if there is none."""
        while not self._pages or self._next >= len(self._pages[0].position):
            if self._pages:
                self._bytes -= self._pages.popleft().nbytes
                self._next = 0
                continue
            page = self._read(self.settled)
            if not len(page.position):
                return None
            self.add(page)
            self._next = int(np.searchsorted(page.position, self.settled, "right"))
        return self._pages[0]
