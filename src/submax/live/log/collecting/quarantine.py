"""Rewards whose decisions are not known yet, in a bounded number."""

from collections import Counter, OrderedDict

import msgspec

MAX_WAITING, MAX_WAITING_OF_KEY = 20_000, 10_000
"""The most ids of unknown decisions that wait, in one bandit and from one key. Rewards normally
overtake their decisions by seconds; a key takes at most half, so that a client that sends wrong
ids cannot push out the rewards of all others."""
MAX_BYTES, MAX_BYTES_OF_KEY = 10_000_000, 5_000_000
"""The most bytes of memory that these take, in one bandit and from one key."""
ENTRY_BYTES = 400
"""Bytes of memory that one id takes in addition to its characters (measured: about 380)."""


class WaitingReward(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Until when a reward waits, in seconds of the log's clock, and which key has sent it."""

    until: float
    source: str


class Quarantine:
    """The ids of unknown decisions that have rewards, in the order in which these came.

    There is a limit on their number and on their bytes, for all together and for each key that
    sends rewards. If a limit is passed, the oldest ones that it counts are dropped.

    >>> quarantine = Quarantine()
    >>> quarantine.add("visit-1", WaitingReward(60.0, "key"))
    []
    >>> "visit-1" in quarantine
    True
    """

    def __init__(self, waiting: dict[str, WaitingReward] | None = None) -> None:
        self._all: OrderedDict[str, WaitingReward] = OrderedDict()
        self._of_source: dict[str, OrderedDict[str, None]] = {}
        self._bytes: Counter[str] = Counter()
        self._total_bytes = 0
        for identifier, one in (waiting or {}).items():
            self._put(identifier, one)

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._all

    def items(self) -> dict[str, WaitingReward]:
        """All ids, oldest first, from which an equal quarantine can be made."""
        return dict(self._all)

    def add(self, identifier: str, waiting: WaitingReward) -> list[str]:
        """Let an id wait, unless it does already; return the ids that were dropped for it."""
        if identifier in self._all:
            return []
        self._put(identifier, waiting)
        dropped = []
        while self._source_is_full(waiting.source):
            dropped.append(next(iter(self._of_source[waiting.source])))
            self.release(dropped[-1])
        while len(self._all) > MAX_WAITING or self._total_bytes > MAX_BYTES:
            dropped.append(next(iter(self._all)))
            self.release(dropped[-1])
        return dropped

    def release(self, identifier: str) -> None:
        """Remove an id, if it waits."""
        waiting = self._all.pop(identifier, None)
        if waiting is None:
            return
        source = waiting.source
        self._bytes[source] -= _size(identifier)
        self._total_bytes -= _size(identifier)
        del self._of_source[source][identifier]
        if not self._of_source[source]:
            del self._of_source[source], self._bytes[source]

    def release_expired(self, now: float) -> list[str]:
        """Remove and return the ids whose time is over."""
        expired = []
        while self._all and next(iter(self._all.values())).until <= now:
            expired.append(next(iter(self._all)))
            self.release(expired[-1])
        return expired

    def _put(self, identifier: str, waiting: WaitingReward) -> None:
        self._all[identifier] = waiting
        self._of_source.setdefault(waiting.source, OrderedDict())[identifier] = None
        self._bytes[waiting.source] += _size(identifier)
        self._total_bytes += _size(identifier)

    def _source_is_full(self, source: str) -> bool:
        many = len(self._of_source.get(source, ())) > MAX_WAITING_OF_KEY
        return many or self._bytes[source] > MAX_BYTES_OF_KEY


def _size(identifier: str) -> int:
    return ENTRY_BYTES + len(identifier)
