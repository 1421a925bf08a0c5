"""The alarms of a bandit, as its stream of alarms says."""

from collections import Counter
from threading import RLock

import msgspec

from submax.live.log.bandits import alarm_stream
from submax.live.log.records import body_of
from submax.live.monitoring.alarms.alarm_records import ACKNOWLEDGED, ENDED, RAISED, Alarm
from submax.live.store.event import Entry, Event
from submax.live.store.store import Store

MAX_ALARMS = 100
"""Alarms that are remembered, the newest."""


class AlarmLog:
    """Follows the stream of alarms, and writes to it.

    ``alarms`` are the newest, oldest first.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._stream, self._read = store, alarm_stream(name), 0
        self.alarms: list[Alarm] = []
        self._lock = RLock()

    def follow(self) -> list[Alarm]:
        """Read the new events, and return all alarms that are remembered."""
        with self._lock:
            while page := self._store.read(self._stream, self._read, limit=1000):
                for event in page:
                    self._apply(event)
                    self._read = event.position
            return self.alarms

    def active(self) -> Counter[str]:
        """The number of active alarms by kind, as far as the stream was read."""
        return Counter(one.kind for one in self.alarms if one.active)

    def raise_alarm(self, alarm: Alarm, key: str | None) -> Alarm | None:
        """Write an alarm; None if it was written before under the same key."""
        entry = Entry(RAISED, msgspec.msgpack.encode(alarm), key)
        (written,) = self._store.append(self._stream, [entry]).result()
        self.follow()
        return msgspec.structs.replace(alarm, at=written.event.at) if written.new else None

    def end(self, kind: str) -> None:
        """Write that an alarm of this kind is over, if one is active."""
        if self.active()[kind]:
            self._store.append(self._stream, [Entry(ENDED, kind.encode())]).result()
            self.follow()

    def acknowledge(self) -> int:
        """Write that all alarms were seen; return how many were active."""
        self.follow()
        active = self.active().total()
        if active:
            self._store.append(self._stream, [Entry(ACKNOWLEDGED, b"")]).result()
            self.follow()
        return active

    def _apply(self, event: Event) -> None:
        if event.kind == RAISED:
            alarm = msgspec.structs.replace(body_of(event, Alarm), at=event.at)
            self.alarms = [*self.alarms, alarm][-MAX_ALARMS:]
            return
        ended = event.body.decode() if event.kind == ENDED else None
        self.alarms = [
            msgspec.structs.replace(one, active=False) if ended in (None, one.kind) else one
            for one in self.alarms
        ]
