"""Finds and remembers the pins of units."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

import msgspec

from submax.live.log.records import PIN, body_of, pin_key
from submax.live.log.unit_pin import StickyAssignment
from submax.live.store.event import AppendResult, Entry
from submax.live.store.store import Store

MAX_CACHED_PINS = 10_000
"""Pins in memory, about 1 kB each with some probabilities; all others are found in the store."""


class CachedPin(NamedTuple):
    """A pin, the ``period`` of its key, and the time at which it began.

    ``durable`` is false until it is known that the store has it.
    """

    pin: StickyAssignment
    period: str
    at: float
    durable: bool


class UnitPins:
    """Pins in the log of a bandit, found by unit and period.

    The log of a store finds a pin for ``archive_after`` seconds, as it finds the id of a decision.
    """

    def __init__(self, store: Store, stream: str, clock: Callable[[], float]) -> None:
        self._store, self._stream, self._clock = store, stream, clock
        self._cached: OrderedDict[str, CachedPin] = OrderedDict()
        self._lock = Lock()

    def period(self, sticky: float | str, version: int) -> str:
        """The period that a pin made now belongs to.

        For a duration it is one of successive intervals of this length, so that a pin that has not
        expired belongs to the current period or to the one before.
        """
        if isinstance(sticky, str):
            return f"v{version}"
        return _interval(sticky, self._clock() // sticky)

    def find(self, unit: str, sticky: float | str, version: int) -> CachedPin | None:
        """The pin of a unit that lasts now; None if there is none."""
        if isinstance(sticky, str):
            return self._find(pin_key(f"v{version}", unit), f"v{version}")
        now = self._clock()
        for number in (now // sticky, now // sticky - 1):
            period = _interval(sticky, number)
            found = self._find(pin_key(period, unit), period)
            if found is not None and now < found.at + sticky:
                return found
        return None

    def _find(self, key: str, period: str) -> CachedPin | None:
        found = self._cached.get(key)
        if found is None:
            event = self._store.find(self._stream, key)
            if event is None:
                return None
            found = CachedPin(body_of(event, StickyAssignment), period, event.at, durable=True)
            self._remember(key, found)
        return found

    def entry(self, unit: str, pin: StickyAssignment, period: str) -> Entry:
        """The entry that makes a pin durable; later decisions of the unit use it at once."""
        key = pin_key(period, unit)
        if key not in self._cached:
            self._remember(key, CachedPin(pin, period, self._clock(), durable=False))
        return Entry(PIN, msgspec.msgpack.encode(pin), key)

    def confirm(self, written: AppendResult) -> None:
        """Note that a pin is durable; if another process was first, its pin counts."""
        event = written.event
        period = (event.key or "").split(" ")[1]
        pin = CachedPin(body_of(event, StickyAssignment), period, event.at, durable=True)
        self._remember(event.key or "", pin)

    def _remember(self, key: str, pin: CachedPin) -> None:
        with self._lock:
            self._cached[key] = pin
            if len(self._cached) > MAX_CACHED_PINS:
                self._cached.popitem(last=False)


def _interval(seconds: float, number: float) -> str:
    return f"t{seconds:g}.{number:.0f}"
