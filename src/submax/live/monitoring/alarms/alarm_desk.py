"""Writes alarms to the store."""

import msgspec

from submax.core.decoding import known_type
from submax.live.log.ledger import Ledger
from submax.live.monitoring.alarms.alarm_log import AlarmLog
from submax.live.monitoring.alarms.alarm_records import REFITS, Alarm
from submax.live.monitoring.alarms.alarm_watch import AlarmWatch, WatchState
from submax.live.serving.live_state import LiveState
from submax.live.store.store import Store

FAILED_REFITS = 3
"""Refits that fail in a row before it is an alarm: one may fail because the store was away."""


class AlarmDesk:
    """The alarms of one bandit in the process that fits its versions."""

    def __init__(self, store: Store, name: str, live_state: LiveState) -> None:
        self._store, self._name, self._live_state = store, name, live_state
        self.log, self.watch = AlarmLog(store, name), AlarmWatch(live_state.settings)
        self._failed = 0
        self._is_failing = False

    def attend(self, ledger: Ledger) -> None:
        """Watch a ledger from where it has been read to, and read the alarms so far."""
        self.log.follow()
        data = self._store.get_blob(self._blob)
        try:
            saved = (
                None if data is None else msgspec.msgpack.decode(data, type=known_type(WatchState))
            )
        except msgspec.DecodeError:
            saved = None
        self.watch.begin(ledger.read_position, saved)
        ledger.page_observer = self.watch.read_page

    def save(self) -> None:
        """Write what was learned, with a snapshot of the ledger."""
        self._store.put_blob(self._blob, msgspec.msgpack.encode(self.watch.state))

    def write(self) -> None:
        """Write the alarms that were raised."""
        self.watch.use(self._live_state.settings)
        raised, self.watch.raised = self.watch.raised, []
        for alarm, key in raised:
            self.log.raise_alarm(alarm, key)

    def drop(self) -> None:
        """Forget the alarms that were raised, and read those that another process writes."""
        self.watch.raised = []
        self.log.follow()

    def count_refit(self, failure: str | None) -> None:
        """Note that a refit succeeded, or why it failed."""
        if failure is None:
            if self._is_failing:
                self.log.follow()
                self.log.end(REFITS)
            self._failed, self._is_failing = 0, False
            return
        self._failed += 1
        if self._failed == FAILED_REFITS:
            self._is_failing = True
            sentence = f"{self._failed} refits have failed in a row, at last: {failure[:300]}"
            self.log.raise_alarm(Alarm(REFITS, sentence, {"failures": float(self._failed)}), None)

    @property
    def _blob(self) -> str:
        return f"{self._name}/alarm-state"
