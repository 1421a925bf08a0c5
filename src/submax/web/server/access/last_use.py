"""When each key was used last."""

import time
from collections.abc import Callable
from threading import Lock

import msgspec

from submax.live.store.store import Store

BLOB = "last use of keys"
"""The blob that holds the times, by key."""


class LastUse:
    """The time of the last request of each key.

    Requests are noted in memory. ``write`` puts the times into the store, together with those that
    other processes have written; the server calls it once a minute and at its end, so that a
    request costs no write.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock
        self._lock = Lock()
        self._used: dict[str, float] = {}
        self._written: dict[str, float] = {}

    def note(self, identifier: str) -> None:
        """Note that a key is used now."""
        self._used[identifier] = self._clock()

    def times(self) -> dict[str, float]:
        """The time of the last use of each key that was used, in seconds since the epoch."""
        return _latest(self._stored(), dict(self._used))

    def write(self) -> None:
        """Put the times into the store, if any are new."""
        with self._lock:
            used = dict(self._used)
            if used != self._written:
                self._store.put_blob(BLOB, msgspec.msgpack.encode(_latest(self._stored(), used)))
                self._written = used

    def _stored(self) -> dict[str, float]:
        data = self._store.get_blob(BLOB)
        return {} if data is None else msgspec.msgpack.decode(data, type=dict[str, float])


def _latest(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    return {key: max(first.get(key, 0.0), second.get(key, 0.0)) for key in {**first, **second}}
