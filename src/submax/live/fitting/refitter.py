"""New versions from what has matured."""

import logging
import math
import time
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from submax.core.contracts.policy import Policy
from submax.core.errors import ConflictError
from submax.live.declaring.settings import Settings
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.fitting.learner import Learner
from submax.live.fitting.reasons import why_nothing_matured
from submax.live.fitting.refit_result import RefitResult
from submax.live.log.bandits import log_stream, model_name, settings_stream
from submax.live.log.history import read_history
from submax.live.log.ledger import Ledger, ledger_of
from submax.live.log.records import PUBLISHED, TICK, VERSION, Fitted, Published
from submax.live.log.snapshot import read_snapshot, write_snapshot
from submax.live.serving.live_state import LiveState
from submax.live.store.event import Entry
from submax.live.store.store import Store
from submax.schema.columns import Columns
from submax.schema.model import Model, hash_of
from submax.schema.schema import Schema

LOG = logging.getLogger("submax")
HEARTBEAT_SECONDS = 60.0
"""Between two ticks at most, while decisions are open."""
SKEW_SECONDS = 5.0
"""Between two ticks at least, where the last one did not help."""
FEWEST = 10
"""Rows for a first version: from one or two a policy would draw conclusions."""
RESTING = 2.0
"""Between two fits, times what the last one took."""
SNAPSHOT_EVERY = 50_000
"""Events after which the ledger is kept."""


class Work(NamedTuple):
    """All that a fit needs."""

    settings: Settings
    schema: Schema
    policy: Policy[Any]
    rows: Columns
    learned: int
    read: int
    ahead: int


class Refitter(Learner):
    """Follows the log, fits and publishes; of several processes, the one that leads."""

    def __init__(
        self,
        store: Store,
        name: str,
        live_state: LiveState,
        clock: Callable[[], float],
    ) -> None:
        self._store, self._name, self._clock = store, name, clock
        self._live_state = live_state
        # While a version is fitted, which may take long, the ledger can be read.
        self._fitting, self._lock = Lock(), Lock()
        self._ledger: Ledger | None = None
        self._fitted_at, self._took = time.monotonic(), 0.0
        self._dropped: set[int] = set()
        self._started_with: list[Columns] | None = None
        self._ticked_at, self._patience = time.monotonic(), 0.0
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
        with self._fitting:
            with self._lock:
                if not self._store.try_lead(self._name):
                    # Another process writes snapshots and versions; what is known here grows old.
                    self._ledger = None
                    return None
                self._read()
                work = self._work() if self._is_time() else None
            return None if work is None else self._fit(work)

    def refit(self) -> RefitResult:
        with self._fitting:
            with self._lock:
                if not self._store.try_lead(self._name):
                    raise ConflictError(
                        f"another process fits the versions of {self._name!r}, and one process at "
                        "a time may: call refit there"
                    )
                self._read()
                new = self._new_rows()
                work = self._work() if new or self._outdated() else None
                if work is None:
                    return self._nothing_done()
            fitted = self._fit(work)
            reason = (
                f"version {fitted.version} was fitted from {fitted.rows} rows, {new} of them new"
            )
            return RefitResult(True, fitted.version, new, reason, fitted)

    def _nothing_done(self) -> RefitResult:
        reason = why_nothing_matured(self.ledger, fresh=not len(self.ledger.rows))
        return RefitResult(False, self._live_state.serving.version, 0, reason)

    def before_decision(self) -> None:
        """Do nothing: versions are fitted beside the decisions."""

    def catch_up(self) -> Ledger:
        # Who only looks does not begin to lead.
        with self._lock:
            self._read()
            return self.ledger

    def known(self) -> Ledger | None:
        # The log may be long, and a process that does not lead has not read it.
        leads = self._store.leads(self._name)
        return self.catch_up() if leads else self._ledger

    def counts(self) -> dict[str, int]:
        ledger = self._ledger
        return {} if ledger is None else dict(ledger.counts)

    def snapshot(self) -> None:
        with self._lock:
            ledger = self._ledger
            news = ledger is not None and ledger.heard > self._snapshot_at
            if ledger is not None and news and self._store.leads(self._name):
                self._keep(ledger)

    def _empty(self) -> Ledger:
        return ledger_of(self._store, self._name, self._live_state.projection.settings)

    def _read(self) -> None:
        ledger = self.ledger
        ledger.follow()
        if not self._store.leads(self._name):
            return
        if self._must_tick(ledger):
            before, expected = ledger.settled, ledger.due(self._clock())
            self._store.append(log_stream(self._name), [Entry(TICK, b"")]).result()
            ledger.follow()
            self._ticked_at = time.monotonic()
            # The store's clock may be behind this one: ticks do not make it faster.
            in_vain = expected and ledger.settled == before
            self._patience = SKEW_SECONDS if in_vain else 0.0
        if ledger.heard - self._snapshot_at >= SNAPSHOT_EVERY:
            self._keep(ledger)

    def _must_tick(self, ledger: Ledger) -> bool:
        """Time passes without events too, and the log must say so.

        From time to time also where nothing seems due: the clock may have been set back.
        """
        waited = time.monotonic() - self._ticked_at
        if ledger.due(self._clock()):
            return waited >= self._patience
        return ledger.open and waited >= HEARTBEAT_SECONDS

    def _keep(self, ledger: Ledger) -> None:
        write_snapshot(self._store, self._name, ledger)
        self._snapshot_at = ledger.heard

    def _is_time(self) -> bool:
        settings, new = self._live_state.projection.settings, self._new_rows()
        waited = time.monotonic() - self._fitted_at
        if waited < RESTING * self._took:
            return False
        few = min(settings.refit_rows, FEWEST) if not self._live_state.projection.versions else 1
        late = waited >= settings.refit_seconds and new >= few
        return new >= settings.refit_rows or late or self._outdated()

    def _new_rows(self) -> int:
        versions = self._live_state.projection.versions
        history = self._live_state.projection.history
        rows = len(self.ledger.rows) + (0 if history is None else history.rows)
        return rows - (versions[max(versions)].rows if versions else 0)

    def _outdated(self) -> bool:
        """Whether the newest version was fitted for other choices or by another policy."""
        projection = self._live_state.projection
        if not projection.versions:
            return False
        newest = projection.versions[max(projection.versions)]
        return newest.shown != projection.menu.active or newest.policy != projection.settings.policy

    def _work(self) -> Work:
        """What to fit, as it is now."""
        self._live_state.follow()
        projection, ledger = self._live_state.projection, self.ledger
        return Work(
            projection.settings,
            projection.settings.schema(projection.menu),
            self._live_state.policy,
            Columns.joined([*self._history(), ledger.rows.columns()]),
            ledger.settled,
            ledger.heard,
            self._ahead(),
        )

    def _ahead(self) -> int:
        """How many decisions are taken before those of now are learned from.

        As many as are under way, and as many as came since the last version; where a version is
        made because choices or policy have changed, which says nothing about the pace, at least as
        many as the last one expected. Decisions without a reward are under way only if they mature
        in the end.
        """
        counts, versions = self.ledger.counts, self._live_state.projection.versions
        ahead = max(1, self._new_rows())
        if self.ledger.settings.longest_wait < math.inf:
            # Otherwise decisions whose reward never comes would be waited for without end.
            ahead += counts["decisions"] - counts["matured"]
        return max(ahead, versions[max(versions)].ahead) if self._outdated() else ahead

    def _history(self) -> list[Columns]:
        """What the bandit was started with; it never changes."""
        if self._started_with is None and self._live_state.projection.history is not None:
            self._started_with = read_history(
                self._store, self._name, self._live_state.projection.history
            )
        return self._started_with or []

    def _fit(self, work: Work) -> Fitted:
        begin = time.monotonic()
        seed, ahead = work.settings.seed, work.ahead
        model = Model.fitted(work.schema, work.policy, [work.rows], seed, ahead)
        data = model.to_bytes()
        # A state that cannot be read back must not be announced.
        Model.from_bytes(data, hash_of(data), work.policy)
        projection = self._live_state.projection
        fitted = Fitted(
            version=max(projection.versions, default=0) + 1,
            model=hash_of(data),
            policy=work.settings.policy,
            rows=len(work.rows.reward),
            learned=work.learned,
            read=work.read,
            rows_hash=work.rows.hash,
            seed=work.settings.seed,
            shown=model.shown,
            ahead=work.ahead,
        )
        self._store.put_blob(model_name(self._name, fitted.model), data)
        self._announce(fitted)
        self._live_state.follow()
        self._drop_old(projection)
        self._fitted_at = time.monotonic()
        self._took = self._fitted_at - begin
        LOG.info("%s: version %d from %d rows", self._name, fitted.version, fitted.rows)
        return fitted

    def _announce(self, fitted: Fitted) -> None:
        published = Published(fitted.version, model=fitted.model)
        entries = [
            Entry(VERSION, msgspec.msgpack.encode(fitted), f"version {fitted.version}"),
            Entry(PUBLISHED, msgspec.msgpack.encode(published)),
        ]
        written = self._store.append(settings_stream(self._name), entries).result()
        if not written[0].new:
            raise ConflictError(f"another process was first with version {fitted.version}")

    def _drop_old(self, projection: SettingsProjection) -> None:
        """Keep the models of the newest versions and of the one that decides."""
        deciding = projection.published[-1].version if projection.published else 0
        limit = max(projection.versions) - projection.settings.keep_versions
        old = {number for number in projection.versions if number <= limit and number != deciding}
        kept = {one.model for number, one in projection.versions.items() if number not in old}
        for number in old - self._dropped:
            if projection.versions[number].model not in kept:
                self._store.delete_blob(model_name(self._name, projection.versions[number].model))
        self._dropped = old
