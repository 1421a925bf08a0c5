"""Which decisions are in the archive, by their ids."""

import hashlib
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np

from submax.core.errors import InputError, StoreError
from submax.live.archive.archive import Archive
from submax.live.archive.compacting.recent_hashes import Hashes, RecentHashes
from submax.live.archive.segments.archived_segment import ArchivedSegment
from submax.live.archive.segments.id_halves import halves_of
from submax.live.archive.segments.segment_reader import give_back_memory
from submax.live.store.store import Store

MOST_IDS = 4_000_000
"""The most ids that are held, 8 bytes of memory each. Those of older decisions are not known."""
SEGMENTS_AT_ONCE = 4
"""Segments that are read by one call, newest first: some milliseconds each."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""An odd number near 2⁶⁴ divided by the golden ratio, which mixes the bits of a product."""


class ArchivedIds:
    """Hashes of the ids of archived decisions, of 64 bits, read from the segments when needed.

    Of a million other ids, one is found by mistake with a probability below 10⁻⁶. All methods may
    be called from any thread.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._archive = Archive(store, name)
        self._lock = Lock()
        self._read: set[int] = set()
        self._hashes = RecentHashes(MOST_IDS)

    def __contains__(self, identifier: str) -> bool:
        """Whether the decision with this id is archived, as far as the segments were read.

        One call reads some segments at most, so that it never takes long.
        """
        with self._lock, suppress(StoreError):
            self._archive.follow()
            if unread := self._unread()[:SEGMENTS_AT_ONCE]:
                self._add(unread)
        with self._lock:
            return hash_of_id(identifier) in self._hashes

    def _unread(self) -> list[ArchivedSegment]:
        """The segments that were not read: first those that are new, then the newest of the old."""
        unread = [one for one in self._archive.segments if one.number not in self._read]
        if not self._read:
            return unread[::-1]
        newer = [one for one in unread if one.number > self._hashes.newest]
        return newer + [one for one in unread[::-1] if one.number < self._hashes.newest]

    def _add(self, segments: list[ArchivedSegment]) -> None:
        try:
            for segment in segments:
                self._read.add(segment.number)
                if self._hashes.has_room(segment.number, segment.decisions):
                    # The doctor tells about a segment that is damaged.
                    with suppress(InputError):
                        hashes = id_hashes(self._archive.reader(segment).decision_ids())
                        self._hashes.add(segment.number, hashes)
        finally:
            # A segment is read once. Only this thread can give its memory back, and another one
            # may read the next segments.
            self._archive.close()
            give_back_memory()


def hash_of_id(identifier: str) -> np.uint64:
    """Return the hash of an id; that of a UUID is computed from its two halves."""
    halves = halves_of(identifier)
    if halves is None:
        return _hash_of_text(identifier)
    high, low = np.array([halves], np.int64).view(np.uint64).T
    return np.uint64(_mixed(high, low)[0])


def id_hashes(ids: Any) -> Hashes:
    """Return the hashes of ids in a table with the columns ``id``, ``id_high`` and ``id_low``."""
    high, low = (
        ids[name].fill_null(0).to_numpy().view(np.uint64) for name in ("id_high", "id_low")
    )
    hashes = _mixed(high, low)
    texts = ids["id"].to_pylist() if ids["id"].null_count < len(ids) else ()
    for place, text in enumerate(texts):
        if text is not None:
            hashes[place] = _hash_of_text(text)
    return hashes


def _mixed(high: Hashes, low: Hashes) -> Hashes:
    # A product of 64 bits moves information only upwards, so that the upper half is folded back.
    product = (high ^ (low * FACTOR)) * FACTOR
    mixed: Hashes = (product ^ (product >> np.uint64(32))) * FACTOR
    return mixed


def _hash_of_text(identifier: str) -> np.uint64:
    data = hashlib.blake2b(identifier.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return np.uint64(int.from_bytes(data))
