"""The keys of many events from their records."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from submax.live.store.columns.byte_column import ByteColumn, values_at
from submax.live.store.columns.key_column import KeyColumn, KeysWithIds
from submax.live.store.sqlite_format.event_record import ABOUT_OF_KEY, HAS_ABOUT_TEXT, HAS_KEY
from submax.live.store.sqlite_format.packed_key import (
    LETTERS,
    PACKED_BYTES,
    UUID_BYTES,
    decision_of,
    unpacked_many,
)

KEY_FLAGS = HAS_KEY | ABOUT_OF_KEY | HAS_ABOUT_TEXT
DECISION_LETTER = "d"
FIRST_LETTER, LAST_LETTER = min(LETTERS.values()), max(LETTERS.values())


class RecordKeys(KeyColumn):
    """Packed keys, the flags of records, and the texts of what events are about, if stored."""

    def __init__(self, stored: ByteColumn, flags: NDArray[np.uint8], about: ByteColumn) -> None:
        self._stored, self._flags, self._about = stored, flags, about

    def texts(self, places: Sequence[int]) -> list[str | None]:
        chosen = np.asarray(places, np.int64)
        known = (self._flags[chosen] & HAS_KEY).tolist()
        stored = self._stored.take(chosen)
        return unpacked_many([one if has else None for one, has in zip(stored, known, strict=True)])

    def about_texts(self, places: Sequence[int]) -> list[str | None]:
        chosen = np.asarray(places, np.int64)
        return [
            decision_of(key)
            if flags & ABOUT_OF_KEY
            else about.decode("utf-8", "surrogateescape")
            if flags & HAS_ABOUT_TEXT
            else None
            for key, flags, about in zip(
                self.texts(places),
                self._flags[chosen].tolist(),
                self._about.take(chosen),
                strict=True,
            )
        ]

    def uuids(self, places: Sequence[int]) -> NDArray[np.uint8] | None:
        keys = self._stored.take(np.asarray(places, np.int64))
        if not len(keys) or (keys.size != PACKED_BYTES).any():
            return None
        letters = values_at(keys.data, "u1", keys.begin)
        if ((letters < FIRST_LETTER) | (letters > LAST_LETTER)).any():
            return None
        return _uuids(keys)

    def with_uuids(self, letter: str, places: NDArray[np.int64]) -> KeysWithIds | None:
        keys, flags = self._stored.take(places), self._flags[places]
        wanted = HAS_KEY if letter == DECISION_LETTER else HAS_KEY | ABOUT_OF_KEY
        if ((flags & KEY_FLAGS) != wanted).any() or (keys.size < PACKED_BYTES).any():
            return None
        if (values_at(keys.data, "u1", keys.begin) != LETTERS[letter]).any():
            return None
        rest = ByteColumn(keys.data, keys.begin + PACKED_BYTES, keys.size - PACKED_BYTES)
        return KeysWithIds(_uuids(keys), rest)


def _uuids(keys: ByteColumn) -> NDArray[np.uint8]:
    """Return the UUIDs of packed keys, ``[n, 16]``."""
    found = values_at(keys.data, f"V{UUID_BYTES}", keys.begin + 1)
    return found.view(np.uint8).reshape(len(keys), UUID_BYTES)
