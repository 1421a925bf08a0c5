"""The last decisions of a log, whose rewards may come soon."""

from bisect import bisect_right
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from submax.bandit.assignment import GROUP_RECORD
from submax.live.log.decisions.decided_rows import DecidedRows

RECENT_DECISIONS = 10_000
"""At least this many decisions are remembered if ``reward_wait`` is 0: some megabytes."""


class RecentDecisions:
    """Decisions by position: the last ones from memory, and all others by ``find``.

    ``find`` returns one decision, or None if the log does not have it.
    """

    def __init__(self, find: Callable[[int], DecidedRows | None]) -> None:
        self._find = find
        self._pages: list[DecidedRows] = []
        # The first position of each page, by which the page of a decision is found.
        self._begins: list[int] = []
        self._count = 0

    def add(self, rows: DecidedRows) -> None:
        """Remember decisions, which are newer than all others."""
        if len(rows.position):
            self._pages.append(rows)
            self._begins.append(int(rows.position[0]))
            self._count += len(rows.position)
        while self._pages and self._count - len(self._pages[0].position) >= RECENT_DECISIONS:
            self._count -= len(self._pages[0].position)
            del self._pages[0], self._begins[0]

    def rows(self, positions: NDArray[np.int64]) -> tuple[DecidedRows, NDArray[np.int64]]:
        """Return the decisions at positions, and where each of these is among them; −1 if nowhere.

        A position may be asked for several times.
        """
        parts: list[DecidedRows] = []
        places: dict[int, int] = {}
        of_page: dict[int, list[int]] = {}
        for position in dict.fromkeys(positions.tolist()):
            of_page.setdefault(bisect_right(self._begins, position) - 1, []).append(position)
        for number, wanted in of_page.items():
            for found in self._found(number, wanted):
                for position in found.position.tolist():
                    places[position] = len(places)
                parts.append(found)
        where = [places.get(position, -1) for position in positions.tolist()]
        return (DecidedRows.joined(parts) if parts else NOTHING), np.array(where, np.int64)

    def _found(self, number: int, wanted: list[int]) -> Iterator[DecidedRows]:
        """The decisions at some positions: from the page of this number if it has them."""
        known: set[int] = set()
        if number >= 0:
            page = self._pages[number]
            at = np.searchsorted(page.position, wanted)
            here = at[page.position[np.minimum(at, len(page.position) - 1)] == wanted]
            if len(here):
                yield page.take(here)
                known = {*page.position[here].tolist()}
        for position in wanted:
            row = None if position in known else self._find(position)
            if row is not None:
                yield row


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
