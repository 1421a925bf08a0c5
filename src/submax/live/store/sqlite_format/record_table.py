"""The fields of many records, which numpy reads at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.live.store.columns.byte_column import ByteColumn, values_at
from submax.live.store.columns.event_kinds import KINDS
from submax.live.store.sqlite_format.event_record import (
    ABOUT,
    GAP,
    HAS_ABOUT,
    HAS_ABOUT_TEXT,
    HAS_GAP,
    HEAD,
    HEAD_FIELDS,
    LENGTH,
)

FEWEST = 16
"""Records of one size in a row that are worth comparing at once."""
GROWTH = 4
"""How many times as many records are compared next."""
SINGLE = 256
"""Records that are passed one by one after a shorter run, before runs are looked for again."""
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RecordTable:
    """The fields of ``n`` records, see ``event_record``; ``begin`` is where each begins.

    ``kind`` is as it is stored. ``about`` are the texts of what events are about, if stored.
    """

    data: bytes
    begin: Places
    size: Places
    position: Places
    previous: Places
    checksum: NDArray[np.void]
    at: Floats
    kind: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    key: ByteColumn
    about_position: Places
    about_at: Floats
    about: ByteColumn
    body: ByteColumn

    def __len__(self) -> int:
        return len(self.begin)

    def record(self, place: int) -> bytes:
        """Return one record."""
        begin = int(self.begin[place])
        return self.data[begin : begin + int(self.size[place])]

    @classmethod
    def of(cls, data: bytes) -> "RecordTable":
        """Read records one after the other; an error if one of them does not fit.

        That is an ``IndexError`` or a ``ValueError``.
        """
        begin = record_places(data)
        head = values_at(data, f"V{HEAD.size}", begin).view(HEAD_FIELDS)
        flags, kind, size = head["flags"].copy(), head["kind"].copy(), head["size"].astype(np.int64)
        key_size = head["key_size"].astype(np.int64)
        place = begin + HEAD.size + key_size
        gap, about_position, about_at = _numbers(data, flags, place)
        other = (kind >= len(KINDS)).nonzero()[0]
        place[other] += LENGTH.size + _sizes(data, place[other])
        named = (flags & HAS_ABOUT_TEXT).nonzero()[0]
        about_size = np.zeros(len(begin), np.int64)
        about_size[named] = _sizes(data, place[named])
        about = ByteColumn(data, place + LENGTH.size, about_size)
        place[named] += LENGTH.size + about_size[named]
        if (place > begin + size).any():
            raise ValueError("a record ends before its body begins")
        position = head["position"].copy()
        return cls(
            data,
            begin,
            size,
            position,
            position - gap,
            head["checksum"].copy(),
            head["at"].copy(),
            kind,
            flags,
            ByteColumn(data, begin + HEAD.size, key_size),
            about_position,
            about_at,
            about,
            ByteColumn(data, place, begin + size - place),
        )


def _numbers(data: bytes, flags: NDArray[np.uint8], place: Places) -> tuple[Places, Places, Floats]:
    """Return gaps, and positions and times of what events are about; ``place`` moves behind."""
    gap, about_position = np.ones(len(place), np.int64), np.zeros(len(place), np.int64)
    about_at = np.zeros(len(place))
    far = (flags & HAS_GAP).nonzero()[0]
    gap[far] = values_at(data, "<i8", place[far])
    place[far] += GAP.size
    known = (flags & HAS_ABOUT).nonzero()[0]
    found = values_at(data, f"V{ABOUT.size}", place[known]).view([("p", "<i8"), ("t", "<f8")])
    about_position[known], about_at[known] = found["p"], found["t"]
    place[known] += ABOUT.size
    return gap, about_position, about_at


def record_places(data: bytes) -> Places:
    """Return where each record begins. A record begins with its number of bytes.

    Records of one size often follow each other; they are found by one comparison.
    """
    parts: list[Places] = []
    place, end = 0, len(data)
    while place < end:
        size = _size_at(data, place)
        count = _run(data, place, size)
        if count >= FEWEST:
            parts.append(place + size * np.arange(count))
            place += size * count
            continue
        single: list[int] = []
        while place < end and len(single) < SINGLE:
            single.append(place)
            place += _size_at(data, place)
        parts.append(np.array(single))
    return np.concatenate(parts)


def _size_at(data: bytes, place: int) -> int:
    """Return the size of the record at a place, all of which must be in the data."""
    (size,) = LENGTH.unpack_from(data, place) if place + HEAD.size <= len(data) else (0,)
    if size < HEAD.size or place + size > len(data):
        raise ValueError(f"a record of {size} bytes is among {len(data) - place} that are left")
    return int(size)


def _run(data: bytes, place: int, size: int) -> int:
    """Return how many records of one size follow each other from a place on."""
    most = (len(data) - place) // size
    count = tried = 0
    # More and more are compared, so that the work is in proportion to what is found.
    while count == tried < most:
        tried = min(most, max(FEWEST, GROWTH * tried))
        sizes = np.ndarray((tried,), "<u4", data, place, (size,))
        different = (sizes != size).nonzero()[0]
        count = int(different[0]) if len(different) else tried
    return count


def _sizes(data: bytes, places: Places) -> Places:
    """Return the numbers of bytes of the texts that begin at some places."""
    return values_at(data, "<u4", places).astype(np.int64)
