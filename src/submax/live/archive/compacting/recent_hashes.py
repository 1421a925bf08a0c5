"""A bounded set of hashes, from which those of the oldest segments go first."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

GROUPS = 16
"""Hashes of neighbouring segments are sorted together, up to the limit divided by this."""
Hashes = NDArray[np.uint64]


class RecentHashes:
    """Hashes by the number of their segment, at most ``limit`` of them.

    Segments are added next to those that are here: newer than all, or older than all. If there
    are too many hashes, a group of the oldest segments goes; an older segment that does not fit
    is not added.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._groups: deque[Hashes] = deque()
        self.newest = -1

    def __len__(self) -> int:
        return sum(map(len, self._groups))

    def __contains__(self, wanted: np.uint64) -> bool:
        return any(_holds(group, wanted) for group in self._groups)

    def has_room(self, segment: int, count: int) -> bool:
        """Whether a segment with so many hashes would be kept."""
        return segment > self.newest or len(self) + count <= self._limit

    def add(self, segment: int, hashes: Hashes) -> None:
        """Add the hashes of a segment, for which there must be room."""
        newer = segment > self.newest
        self.newest = max(self.newest, segment)
        end = -1 if newer else 0
        if self._groups and len(self._groups[end]) + len(hashes) <= self._limit // GROUPS:
            self._groups[end] = np.sort(np.concatenate([self._groups[end], hashes]))
        elif newer:
            self._groups.append(np.sort(hashes))
        else:
            self._groups.appendleft(np.sort(hashes))
        while len(self) > self._limit and len(self._groups) > 1:
            self._groups.popleft()


def _holds(hashes: Hashes, wanted: np.uint64) -> bool:
    place = np.searchsorted(hashes, wanted)
    return bool(place < len(hashes) and hashes[place] == wanted)
