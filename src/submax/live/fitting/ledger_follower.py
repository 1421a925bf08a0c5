"""Keeps the ledger of a bandit up to date with its log."""

import time
from collections.abc import Callable

from submax.core.errors import StoreError
from submax.live.archive.derived_rows import DerivedRows
from submax.live.background import BACKGROUND
from submax.live.log.bandits import log_stream
from submax.live.log.ledger import Ledger, ledger_of
from submax.live.log.records import TICK
from submax.live.log.rows.row_segments import StoredSegments
from submax.live.log.snapshot import read_snapshot, snapshot_name, write_snapshot
from submax.live.monitoring.alarms.alarm_desk import AlarmDesk
from submax.live.monitoring.rollups.rollups import Rollups
from submax.live.serving.live_state import LiveState
from submax.live.store.event import Entry
from submax.live.store.store import Store

HEARTBEAT_SECONDS = 60.0
"""While decisions are open, a tick is written at least this often, even if none is due."""
SKEW_SECONDS = 5.0
"""If a tick settled nothing although a decision was due, the store's clock is behind; the next tick
waits this long."""
SNAPSHOT_EVENTS = 50_000
"""Events after which a snapshot of the ledger is written; reading as many takes about a second."""


class LedgerFollower:
    """Reads the log into a ledger; in the one process that leads, writes ticks and snapshots.

    ``restored`` is the ledger; None if it must be restored first. ``rollups`` are those after the
    last reading, which other threads may look at. ``after_snapshot`` is called
    whenever a snapshot was written. Callers hold a lock: no method may be called from two threads
    at once.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        live_state: LiveState,
        clock: Callable[[], float],
        after_snapshot: Callable[[], None],
        alarms: AlarmDesk | None = None,
    ) -> None:
        self.restored: Ledger | None = None
        self.rollups: Rollups | None = None
        self._store, self._name, self._clock = store, name, clock
        self._live_state, self._after_snapshot = live_state, after_snapshot
        self._alarms = alarms
        self._led = False
        self._ticked_at, self._tick_pause = time.monotonic(), 0.0
        self._snapshot_at = self._rolled_up_to = 0

    @property
    def ledger(self) -> Ledger:
        """The ledger, restored from the last snapshot."""
        if self.restored is None:
            ledger = self._empty()
            if not read_snapshot(self._store, self._name, ledger, self.may_write):
                ledger = self._empty()
            self._snapshot_at = ledger.read_position
            if self._alarms is not None:
                self._alarms.attend(ledger)
            self.restored = ledger
        return self.restored

    def try_lead(self) -> bool:
        """Whether this process fits versions; the ledger is restored whenever this changes.

        While another process leads, the ledger here would become outdated, and its new segments of
        rows are only in memory.
        """
        leads = self._store.try_lead(self._name)
        if not leads or not self._led:
            self.restored = None
        self._led = leads
        return leads

    @BACKGROUND
    def read(self) -> Ledger:
        """Read the new events, and write a tick and a snapshot if it is time; return the ledger."""
        ledger = self.ledger
        try:
            ledger.follow()
        except StoreError:
            # An event may have been processed in part, so the ledger is restored next time.
            self.restored = None
            raise
        BACKGROUND.give_way()
        leads = not self._live_state.deleted and self._store.leads(self._name)
        if leads and self._must_tick(ledger):
            self._tick(ledger)
            BACKGROUND.give_way()
        if self.rollups is None or ledger.read_position != self._rolled_up_to:
            self.rollups, self._rolled_up_to = ledger.rollups.copy(), ledger.read_position
        BACKGROUND.give_way()
        if self._alarms is not None:
            self._alarms.write() if leads else self._alarms.drop()
        if not leads:
            return ledger
        if ledger.read_position - self._snapshot_at >= SNAPSHOT_EVENTS:
            self._write_snapshot(ledger)
        return ledger

    def read_again(self) -> Ledger:
        """Read the whole log again, without the snapshot, so that all rows are made anew."""
        self._store.delete_blob(snapshot_name(self._name))
        self.restored = None
        return self.read()

    def write_snapshot(self) -> None:
        """Write a snapshot if events were read since the last one."""
        if self.restored is not None and self.restored.read_position > self._snapshot_at:
            self._write_snapshot(self.restored)

    def _write_snapshot(self, ledger: Ledger) -> None:
        if not self.may_write():
            return
        write_snapshot(self._store, self._name, ledger)
        if self._alarms is not None:
            self._alarms.save()
        self._after_snapshot()
        self._snapshot_at = ledger.read_position

    def may_write(self) -> bool:
        """Whether this process may write blobs: it leads, and the bandit was not deleted meanwhile.

        The settings are read first, because a long log may have been read since they were.
        """
        self._live_state.follow()
        return not self._live_state.deleted and self._store.leads(self._name)

    def _empty(self) -> Ledger:
        settings = self._live_state.projection.settings
        derived = DerivedRows(self._store, self._name, settings)
        segments = StoredSegments(self._store, self._name, leads=self.may_write, derived=derived)
        observer = None if self._alarms is None else self._alarms.watch
        return ledger_of(self._store, self._name, settings, observer, segments)

    def _must_tick(self, ledger: Ledger) -> bool:
        """Whether to write a tick.

        A tick is an empty event that records the time, so that decisions can mature without other
        events. A tick is also written from time to time if nothing seems due, because the clock may
        have been set back.
        """
        waited = time.monotonic() - self._ticked_at
        if ledger.due(self._clock()):
            return waited >= self._tick_pause
        return ledger.open and waited >= HEARTBEAT_SECONDS

    def _tick(self, ledger: Ledger) -> None:
        before, expected = ledger.settled, ledger.due(self._clock())
        self._store.append(log_stream(self._name), [Entry(TICK, b"")]).result()
        ledger.follow()
        self._ticked_at = time.monotonic()
        # If the store's clock is behind this one, more ticks do not help.
        settled_nothing = expected and ledger.settled == before
        self._tick_pause = SKEW_SECONDS if settled_nothing else 0.0
