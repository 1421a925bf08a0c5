"""The last decisions of a log, whose rewards may come soon."""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from submax.live.log.decisions.decided_rows import DecidedRows
from submax.live.log.group_draw import GROUP_RECORD

RECENT_DECISIONS = 10_000
"""At least this many decisions are remembered if ``reward_wait`` is 0: some megabytes."""


class RecentDecisions:
    """Decisions by position: the last ones from memory, and all others by ``find``.

    ``find`` returns one decision, or None if the log does not have it.
    """

    def __init__(self, find: Callable[[int], DecidedRows | None]) -> None:
        self._find = find
        self._pages: deque[DecidedRows] = deque()
        self._count = 0

    def add(self, rows: DecidedRows) -> None:
        """Remember decisions, which are newer than all others."""
        if len(rows.position):
            self._pages.append(rows)
            self._count += len(rows.position)
        while self._pages and self._count - len(self._pages[0].position) >= RECENT_DECISIONS:
            self._count -= len(self._pages.popleft().position)

    def rows(self, positions: NDArray[np.int64]) -> tuple[DecidedRows, NDArray[np.int64]]:
        """Return the decisions at positions, and where each of these is among them; −1 if nowhere.

        A position may be asked for several times.
        """
        wanted, inverse = np.unique(positions, return_inverse=True)
        parts: list[DecidedRows] = []
        place, found = np.full(len(wanted), -1), 0
        for page in self._pages:
            at = np.searchsorted(page.position, wanted)
            at[at == len(page.position)] = 0
            here = np.flatnonzero(page.position[at] == wanted)
            if len(here):
                parts.append(page.take(at[here]))
                place[here] = found + np.arange(len(here))
                found += len(here)
        for number in np.flatnonzero(place < 0).tolist():
            row = self._find(int(wanted[number]))
            if row is not None:
                parts.append(row)
                place[number], found = found, found + 1
        return (DecidedRows.joined(parts) if parts else NOTHING), place[inverse]


NOTHING = DecidedRows(
    np.zeros(0, np.int64),
    np.zeros((0, 0), np.float32),
    np.zeros((0, 0)),
    np.zeros(0),
    np.zeros(0, np.bool_),
    np.zeros(0, np.bool_),
    np.zeros(0, np.bool_),
    np.zeros(0, np.object_),
    np.zeros(0, GROUP_RECORD),
    np.zeros(0, np.int64),
)
