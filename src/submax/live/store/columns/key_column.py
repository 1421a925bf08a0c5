"""The keys of many events, which become texts when they are asked for."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from submax.live.store.sqlite_format.packed_key import (
    UUID_BYTES,
    StoredKey,
    decision_of,
    unpacked_many,
)

PACKED_BYTES = 1 + UUID_BYTES
"""The bytes of a packed key that is a letter and a UUID."""


class KeyColumn:
    """Keys, and the keys of the decisions that events are about.

    ``stored`` are keys as ``packed`` stores them. ``about`` are texts, or ``ABOUT_KEY`` if an event
    is about the decision whose id is in its own key. Most readers of a log need few of the keys.
    """

    def __init__(self, stored: Sequence[StoredKey] = (), about: Sequence[object] = ()) -> None:
        self.stored, self.about = stored, about

    def texts(self, places: Sequence[int]) -> list[str | None]:
        """Return the keys at some places."""
        return unpacked_many([self.stored[place] for place in places])

    def about_texts(self, places: Sequence[int]) -> list[str | None]:
        """Return the keys of the decisions that the events at some places are about."""
        return [
            decision_of(key) if self.about[place] == ABOUT_KEY else self.about[place]  # type: ignore[misc]  # a text
            for place, key in zip(places, self.texts(places), strict=True)
        ]

    def uuids(self, places: Sequence[int]) -> NDArray[np.uint8] | None:
        """Return the bytes of ids that are UUIDs, ``[n, 16]``; None if some are anything else."""
        keys = [self.stored[place] for place in places]
        if {*map(type, keys)} != {bytes} or {*map(len, keys)} != {PACKED_BYTES}:  # type: ignore[arg-type]  # bytes have a length
            return None
        data = np.frombuffer(b"".join(keys), np.uint8)  # type: ignore[arg-type]  # all are bytes
        return data.reshape(len(keys), PACKED_BYTES)[:, 1:]


ABOUT_KEY = 1
"""Stored in place of ``about`` if it is the key of the decision whose id is in the event's key."""
