"""Fits new versions to decisions that have matured."""

import logging
import math
import time
from collections.abc import Callable
from threading import Lock

from submax.bandit.learning import why_nothing_matured
from submax.core.errors import ConflictError, NotFoundError, StoreError, one_line
from submax.core.optional import SPANS
from submax.live.archive.compacting.compactor import Compactor
from submax.live.background import BACKGROUND
from submax.live.fitting.fit_schedule import FitSchedule
from submax.live.fitting.learner import Answer, Learner
from submax.live.fitting.ledger_follower import LedgerFollower
from submax.live.fitting.refit_result import RefitResult
from submax.live.fitting.training.training_process import TrainingProcess
from submax.live.fitting.version_fitter import FitInput, VersionFitter
from submax.live.fitting.version_publisher import VersionPublisher
from submax.live.log.bandits import log_stream
from submax.live.log.history import read_history
from submax.live.log.ledger import Ledger
from submax.live.log.records import Fitted
from submax.live.log.rows.lazy_rows import LazyRows, RowPart
from submax.live.log.rows.row_segments import DamagedRowsError
from submax.live.log.snapshot import read_rollups
from submax.live.monitoring.alarms.alarm_desk import AlarmDesk
from submax.live.monitoring.rollups.rollups import Rollups
from submax.live.serving.live_state import LiveState
from submax.live.store.store import Store
from submax.policies.specification import PolicySpecification
from submax.schema.model import Model, hash_of

LOG = logging.getLogger("submax")
IDLE_SECONDS = 1.0
"""How often a bandit without new events looks whether decisions have matured or it is time to fit,
if it shares its threads with others."""


class Refitter(Learner):
    """Follows the log of one bandit; in the leader, fits and publishes versions.

    ``step`` is called again and again in the background, ``refit`` by users who do not wait.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        live_state: LiveState,
        clock: Callable[[], float],
        training: TrainingProcess | None = None,
    ) -> None:
        self._store, self._name, self._live_state = store, name, live_state
        # Two locks: the ledger can be read while a version is fitted, which may take long.
        self._fitting, self._lock = Lock(), Lock()
        self._publisher = VersionPublisher(store, name)
        self._versions = VersionFitter(store, name, training)
        self.alarms = AlarmDesk(store, name, live_state)
        self._follower = LedgerFollower(
            store, name, live_state, clock, self._versions.write_state, self.alarms
        )
        self._schedule = FitSchedule(live_state, self._follower)
        self._compactor = Compactor(store, name, clock, self._follower.may_write)
        self._history_parts: list[RowPart] | None = None
        # ``Store.appended`` when the last step began: if it has not changed, no event is new.
        self._appended_before_step: int | None = None
        self._idle_until = 0.0

    def has_work(self) -> bool:
        """Whether ``step`` may have anything to do; reads nothing."""
        appended = self._store.appended(log_stream(self._name))
        is_new = appended is None or appended != self._appended_before_step
        return is_new or time.monotonic() >= self._idle_until

    def step(self) -> Fitted | None:
        """Read new events, and fit a version if it is time; return the version that was fitted."""
        appended = self._store.appended(log_stream(self._name))
        fitted = self._step()
        with self._lock:
            self._appended_before_step = appended
            self._idle_until = time.monotonic() + self._idle_seconds()
        return fitted

    def _idle_seconds(self) -> float:
        """For how long nothing is to be done if no event is appended."""
        ledger = self._follower.restored
        if ledger is None or ledger.open or self._schedule.new_rows() or self._schedule.outdated():
            return IDLE_SECONDS
        return math.inf

    def _step(self) -> Fitted | None:
        with self._fitting:
            with self._lock:
                is_active = self._live_state.settings.status != "archived"
                if self._live_state.deleted or not is_active or not self._follower.try_lead():
                    return None
                ledger = self._follower.read()
                fit_input = self._fit_input() if self._schedule.is_time() else None
                trains_models = self._live_state.policy.traits.trains_models
                self._compactor.prepare(self._live_state.settings, ledger, trains_models)
            self._compactor.work()
            # A thread that waited for the training process would keep other bandits waiting.
            if fit_input is None or self._versions.must_wait(fit_input):
                return None
            return self._fit_unless_deleted(fit_input)

    def refit(self) -> RefitResult:
        with self._fitting:
            with self._lock:
                self._live_state.check_answers()
                if not self._follower.try_lead():
                    raise ConflictError(
                        f"another process fits the versions of {self._name!r}, and one process at "
                        "a time may: call refit there"
                    )
                self._follower.read()
                new = self._schedule.new_rows()
                fit_input = self._fit_input() if new or self._schedule.outdated() else None
                if fit_input is None:
                    return self._nothing_learned()
            fitted = self._fit(fit_input)
            reason = (
                f"version {fitted.version} was fitted from {fitted.rows} rows, {new} of them new"
            )
            return RefitResult(True, fitted.version, new, reason, fitted)

    def _nothing_learned(self) -> RefitResult:
        ledger = self._follower.ledger
        reason = why_nothing_matured(ledger.counts, ledger.settings, fresh=not len(ledger.rows))
        return RefitResult(False, self._live_state.serving.version, 0, reason)

    def catch_up(self) -> Ledger:
        # Reading does not make this process the leader.
        with self._lock:
            return self._follower.read()

    def inspect(self, function: Callable[[Ledger], Answer]) -> Answer:
        with self._lock:
            return function(self._follower.read())

    def ledger_if_read(self) -> Ledger | None:
        # A process that does not lead has not read the log, which may be long.
        leads = self._store.leads(self._name)
        return self.catch_up() if leads else self._follower.restored

    def counts(self) -> dict[str, int]:
        ledger = self._follower.restored
        return {} if ledger is None else dict(ledger.counts)

    def rollups(self) -> Rollups | None:
        if self._follower.rollups is not None and self._store.leads(self._name):
            return self._follower.rollups
        # Another process reads the log, and writes snapshots.
        return read_rollups(self._store, self._name)

    def snapshot(self) -> None:
        with self._lock:
            self._follower.write_snapshot()

    @BACKGROUND
    def _fit_input(self) -> FitInput:
        """The input of a fit, as it is now."""
        self._live_state.follow()
        projection, ledger = self._live_state.projection, self._follower.ledger
        return FitInput(
            projection.settings,
            PolicySpecification(projection.settings.policy),
            projection.settings.schema(projection.menu),
            self._live_state.policy,
            LazyRows([*self._history(), *ledger.rows.parts()]),
            ledger.rows.hash,
            projection.versions,
            self._schedule.outdated(),
            ledger.settled,
            ledger.read_position,
            self._schedule.ahead(),
        )

    def input_for(
        self, specification: PolicySpecification, versions: dict[int, Fitted]
    ) -> FitInput:
        """The input of a fit by another policy with these ``versions``, as it is now."""
        policy = specification.build()
        with self._lock:
            self._follower.read()
            newest = versions[max(versions)] if versions else None
            outdated = newest is not None and (
                newest.active != self._live_state.projection.menu.active
            )
            return self._fit_input()._replace(
                specification=specification, policy=policy, versions=versions, outdated=outdated
            )

    def try_lead(self) -> bool:
        """Whether this process fits versions, or does so from now on."""
        with self._lock:
            return self._follower.try_lead()

    def _history(self) -> list[RowPart]:
        """The rows that the bandit was started with; they never change."""
        history = self._live_state.projection.history
        if self._history_parts is None and history is not None:
            columns = read_history(self._store, self._name, history)
            self._history_parts = list(map(RowPart.of, columns, history.segments))
        return self._history_parts or []

    def _fit_unless_deleted(self, fit_input: FitInput) -> Fitted | None:
        try:
            return self._fit(fit_input)
        except NotFoundError:
            if self._live_state.deleted:
                return None
            raise

    def _fit(self, fit_input: FitInput) -> Fitted:
        """Fit a version, and count failures in a row, which are an alarm."""
        try:
            with SPANS.span("submax.refit", bandit=self._name, rows=fit_input.rows.count):
                fitted = self._fit_and_publish(fit_input)
        except (StoreError, NotFoundError):
            # The store is away, or the bandit was deleted: the fit did not fail.
            raise
        except Exception as error:
            self.alarms.count_refit(one_line(error))
            raise
        self.alarms.count_refit(None)
        return fitted

    def _fit_and_publish(self, fit_input: FitInput) -> Fitted:
        begin = time.monotonic()
        try:
            model, base = self._versions.fit(fit_input)
        except DamagedRowsError:
            fit_input = self._with_new_rows()
            model, base = self._versions.fit(fit_input)
        fitted = self._publish(fit_input, model, base)
        self._schedule.fitted(time.monotonic() - begin)
        LOG.info("%s: version %d from %d rows", self._name, fitted.version, fitted.rows)
        return fitted

    @BACKGROUND
    def _publish(self, fit_input: FitInput, model: Model, base: int) -> Fitted:
        """Write the version of a model, which decides from then on."""
        BACKGROUND.give_way()
        data = model.to_bytes()
        BACKGROUND.give_way()
        # A model that cannot be read back must not be published.
        model_hash = hash_of(data)
        self._live_state.expect(model_hash, Model.from_bytes(data, model_hash, fit_input.policy))
        BACKGROUND.give_way()
        # The bandit may have been deleted meanwhile, and nothing of it may be written again.
        self._live_state.follow()
        self._live_state.check_exists()
        projection = self._live_state.projection
        fitted = Fitted(
            version=max(projection.versions, default=0) + 1,
            model=model_hash,
            policy=fit_input.settings.policy,
            rows=fit_input.rows.count,
            learned=fit_input.learned,
            read=fit_input.read,
            rows_hash=fit_input.rows_hash,
            seed=fit_input.settings.seed,
            active=model.active,
            ahead=fit_input.ahead,
            base=base,
        )
        BACKGROUND.give_way()
        self._publisher.publish(fitted, data)
        BACKGROUND.give_way()
        self._live_state.follow()
        BACKGROUND.give_way()
        self._publisher.delete_old_models(projection)
        return fitted

    def _with_new_rows(self) -> FitInput:
        """Return the input of a fit after all rows were made anew from the log."""
        # The rows of a bandit that is being deleted are gone, and must not be made anew.
        self._live_state.follow()
        self._live_state.check_exists()
        LOG.warning("%s: stored rows are damaged and are made anew from the log", self._name)
        with self._lock:
            self._follower.read_again()
            return self._fit_input()
