"""New versions from what has matured."""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Any

import msgspec

from submax.core.policy import Policy
from submax.live.control import Control
from submax.live.event import Entry
from submax.live.ledger import Ledger
from submax.live.model import Model, hash_of
from submax.live.records import PUBLISHED, TICK, VERSION, Fitted, Published
from submax.live.snapshot import read_snapshot, write_snapshot
from submax.live.store import Store

LOG = logging.getLogger("submax")
SNAPSHOT_EVERY = 50_000
"""Events after which the ledger is kept."""


def log_stream(name: str) -> str:
    """The stream of decisions and rewards of a bandit."""
    return f"{name}/log"


def settings_stream(name: str) -> str:
    """The stream of its settings and versions."""
    return f"{name}/settings"


def model_name(name: str, version: int) -> str:
    """Where the model of a version is kept."""
    return f"{name}/models/{version}"


class Refitter:
    """Follows the log, fits and publishes; of several processes, the one that leads."""

    def __init__(
        self,
        store: Store,
        name: str,
        control: Callable[[], Control],
        policy: Callable[[], Policy[Any]],
        clock: Callable[[], float],
    ) -> None:
        self._store, self._name, self._clock = store, name, clock
        self._control, self._policy = control, policy
        self._lock = Lock()
        self._ledger: Ledger | None = None
        self._fitted_at = time.monotonic()
        self._snapshot_at = 0

    @property
    def ledger(self) -> Ledger:
        """What the log says, from the last snapshot on."""
        if self._ledger is None:
            ledger = self._empty()
            if not read_snapshot(self._store, self._name, ledger):
                ledger = self._empty()
            self._snapshot_at = ledger.heard
            self._ledger = ledger
        return self._ledger

    def step(self) -> Fitted | None:
        """Read what is new, and fit if it is time; the version, if there is one."""
        with self._lock:
            if not self._store.lead(self._name):
                # Another process writes snapshots and versions; what is known here grows old.
                self._ledger = None
                return None
            self._read()
            return self._fit() if self._is_time() else None

    def refit(self) -> Fitted | None:
        """Fit now, if there is anything new."""
        with self._lock:
            self._read()
            return self._fit() if self._new_rows() or self._outdated() else None

    def catch_up(self) -> Ledger:
        """The ledger, up to date."""
        with self._lock:
            self._read()
            return self.ledger

    def counts(self) -> dict[str, int]:
        """What the ledger counted by now, without waiting for anything."""
        ledger = self._ledger
        return {} if ledger is None else dict(ledger.counts)

    def snapshot(self) -> None:
        """Keep what the ledger knows."""
        with self._lock:
            if self._ledger is not None and self._ledger.heard > self._snapshot_at:
                write_snapshot(self._store, self._name, self._ledger)
                self._snapshot_at = self._ledger.heard

    def _empty(self) -> Ledger:
        stream = log_stream(self._name)
        return Ledger(self._control().settings, lambda after: self._store.read(stream, after))

    def _read(self) -> None:
        ledger = self.ledger
        ledger.follow()
        if ledger.due(self._clock()):
            # Time passes without events too; the log must say so.
            self._store.append(log_stream(self._name), [Entry(TICK, b"")]).result()
            ledger.follow()
        if ledger.heard - self._snapshot_at >= SNAPSHOT_EVERY:
            write_snapshot(self._store, self._name, ledger)
            self._snapshot_at = ledger.heard

    def _is_time(self) -> bool:
        settings, new = self._control().settings, self._new_rows()
        waited = time.monotonic() - self._fitted_at >= settings.refit_seconds
        return new >= settings.refit_rows or (waited and new > 0) or self._outdated()

    def _new_rows(self) -> int:
        versions = self._control().versions
        return len(self.ledger.rows) - (versions[max(versions)].rows if versions else 0)

    def _outdated(self) -> bool:
        """Whether the newest version was fitted for other choices or by another policy."""
        control = self._control()
        if not control.versions:
            return False
        newest = control.versions[max(control.versions)]
        return newest.shown != control.menu.active or newest.policy != control.settings.policy

    def _fit(self) -> Fitted:
        control, ledger, policy = self._control(), self.ledger, self._policy()
        columns = ledger.rows.columns()
        model = Model.fitted(control.settings, control.menu, policy, columns, ledger.settled)
        data = model.to_bytes()
        fitted = Fitted(
            version=max(control.versions, default=0) + 1,
            model=hash_of(data),
            policy=control.settings.policy,
            rows=len(columns.reward),
            learned=ledger.settled,
            read=ledger.heard,
            rows_hash=columns.hash,
            seed=control.settings.seed,
            shown=model.shown,
        )
        self._store.keep(model_name(self._name, fitted.version), data)
        self._announce(fitted, publish=not control.held)
        self._drop_old(control)
        self._fitted_at = time.monotonic()
        LOG.info("%s: version %d from %d rows", self._name, fitted.version, fitted.rows)
        return fitted

    def _announce(self, fitted: Fitted, publish: bool) -> None:
        key = f"version {fitted.version}"
        entries = [Entry(VERSION, msgspec.msgpack.encode(fitted), key)]
        if publish:
            body = msgspec.msgpack.encode(Published(fitted.version))
            entries.append(Entry(PUBLISHED, body))
        self._store.append(settings_stream(self._name), entries).result()

    def _drop_old(self, control: Control) -> None:
        """Keep the models of the newest versions and of the one that decides."""
        serving = control.published[-1].version if control.published else 0
        limit = max(control.versions, default=0) + 1 - control.settings.keep_versions
        for version in range(max(1, limit - 1), limit + 1):
            if version != serving:
                self._store.drop(model_name(self._name, version))
