"""Lets a shadow judge decisions and learn, beside the path of decisions."""

import logging
import time
from threading import RLock

import msgspec

from submax.core.errors import InputError, StoreError, one_line
from submax.live.archive.log_reader import LogReader
from submax.live.log.bandits import shadow_stream
from submax.live.log.records import DECISION, DecisionMade, Fitted, body_of
from submax.live.monitoring.shadow.fit_source import FitSource
from submax.live.monitoring.shadow.shadow_comparison import ShadowComparison, report_of
from submax.live.monitoring.shadow.shadow_judge import ShadowJudge
from submax.live.monitoring.shadow.shadow_limits import ShadowLimits
from submax.live.monitoring.shadow.shadow_log import ShadowLog
from submax.live.monitoring.shadow.shadow_records import (
    ENDED,
    OPINIONS,
    STARTED,
    STOPPED,
    ShadowStarted,
    ShadowStopped,
)
from submax.live.monitoring.shadow.shadow_report import ShadowReport
from submax.live.monitoring.shadow.shadow_versions import ShadowVersions
from submax.live.serving.live_state import LiveState
from submax.live.store.event import Entry
from submax.live.store.store import Store

LOG = logging.getLogger("submax")
SHADOW_FAILURES = "failures of the shadow"
"""The name under which these are counted among the failures of a bandit."""
ENCODER = msgspec.msgpack.Encoder()
MAX_OPINIONS = 1000
"""Opinions in one event, and decisions that are judged between two looks at the clock."""
Decisions = list[tuple[int, DecisionMade]]
"""Decisions with their positions in the log."""


class ShadowWorker:
    """Follows log and settings in one thread; decisions never wait for it.

    A version of the shadow judges the decisions after the position up to which the log had been
    read when it was fitted. So a decision is judged by a version that knew only what came before
    it, and the same log gives the same opinions, however late they are written.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        live_state: LiveState,
        source: FitSource,
        limits: ShadowLimits | None = None,
    ) -> None:
        self._store, self._name, self._live_state, self._source = store, name, live_state, source
        self._limits = limits or ShadowLimits()
        # Guards what ``report`` reads; a judgement or a fit may take long and does not hold it.
        self._lock = RLock()
        self._log = ShadowLog(store, name)
        self._versions = ShadowVersions(store, name, live_state, source, self._log)
        self._comparison: ShadowComparison | None = None
        self._judge: ShadowJudge | None = None
        self._judge_of: ShadowStarted | None = None
        self._read_to, self._fitted_beside, self._failed = 0, 0, 0
        self._busy_since: float | None = None

    @property
    def wanted(self) -> bool:
        """Whether the settings have a shadow."""
        return self._live_state.settings.shadow is not None

    def step(self) -> None:
        """Judge new decisions, and fit a version if the bandit has a new one."""
        if not self.wanted or self._live_state.deleted or not self._source.try_lead():
            return
        with self._lock:
            self._log.follow()
            if not self._log.is_of(self._live_state.settings):
                self._start()
            if self._log.stopped is not None:
                return
        self._busy_since = time.monotonic()
        try:
            self._work()
            self._failed = 0
        except StoreError:
            raise
        except Exception as error:
            self._count_failure(one_line(error))
        finally:
            self._busy_since = None

    def supervise(self) -> None:
        """Switch the shadow off if a step takes too long; another thread than that of ``step``."""
        since, most = self._busy_since, self._limits.call_seconds
        if since is not None and time.monotonic() - since > most and self._log.stopped is None:
            reason = f"the shadow did not answer within {most:g} seconds"
            self._count(reason)
            self._stop(reason)

    def report(self) -> ShadowReport:
        """What is known about the shadow, after everything that it has judged was read."""
        with self._lock:
            settings, failures = self._live_state.settings, self._live_state.failures
            self._log.follow()
            comparison = self._compared() if self._log.is_of(settings) else None
            return report_of(settings, self._log, comparison, failures[SHADOW_FAILURES])

    def newest(self) -> tuple[Fitted, bytes]:
        """The newest version of the shadow and its model, which can be promoted."""
        with self._lock:
            self._log.follow()
            return self._versions.newest()

    def end(self) -> None:
        """End the shadow; if the settings have one, the process that leads begins it anew."""
        self._append(ENDED, None)

    def _compared(self) -> ShadowComparison:
        comparison = self._comparison
        if comparison is None or comparison.started != self._log.started:
            comparison = self._comparison = ShadowComparison(
                self._store, self._name, self._live_state.settings, self._log
            )
        comparison.follow()
        return comparison

    def _start(self) -> None:
        """Begin a shadow: it judges decisions that come from now on."""
        settings = self._live_state.settings
        end = self._versions.input().read
        assert settings.shadow is not None, "there is a shadow"
        self._append(STARTED, ShadowStarted(settings.shadow, settings.policy, end))
        self._failed = 0

    def _work(self) -> None:
        """Judge by the version that is known, and then fit the next one if the bandit has one."""
        self._judge_decisions()
        beside = max(self._live_state.projection.versions, default=0)
        if beside > self._fitted_beside or self._versions.outdated:
            self._fit()
            self._fitted_beside = beside

    def _current_judge(self) -> ShadowJudge:
        """The newest version, within the guard rails and choices of now."""
        if self._judge is None or self._judge_of != self._log.started:
            self._judge, read = self._versions.loaded()
            self._judge_of, self._fitted_beside = self._log.started, 0
            # After a restart, decisions that an earlier version should have judged are left out.
            self._read_to = max(self._log.judged, read)
        projection = self._live_state.projection
        self._judge = self._judge.within(projection.settings, projection.menu)
        return self._judge

    def _judge_decisions(self) -> None:
        judge, reader = self._current_judge(), LogReader(self._store, self._name)
        while page := reader.read(self._read_to):
            made = [
                (event.position, body_of(event, DecisionMade))
                for event in page
                if event.kind == DECISION
            ]
            drawn = [one for one in made if not one[1].holdout]
            for first in range(0, len(drawn), MAX_OPINIONS):
                self._write_opinions(judge, drawn[first : first + MAX_OPINIONS])
            self._read_to = page[-1].position

    def _write_opinions(self, judge: ShadowJudge, decisions: Decisions) -> None:
        begin = time.thread_time()
        found = judge.opinions(decisions)
        seconds = (time.thread_time() - begin) / len(decisions)
        self._append(OPINIONS, found)
        self._read_to = decisions[-1][0]
        if seconds > self._limits.decision_seconds:
            raise InputError(
                f"the shadow took {seconds:.3g} seconds for a decision, and "
                f"{self._limits.decision_seconds:g} are allowed: give a policy that is faster"
            )

    def _fit(self) -> None:
        given = self._versions.input()
        if not given.rows.count:
            return
        # Decisions up to where the log was read are judged by the version that was known.
        self._judge_decisions()
        self._judge, seconds = self._versions.fit(given, self._read_to, self._append)
        if seconds > self._limits.fit_seconds:
            raise InputError(
                f"the shadow took {seconds:.3g} seconds to learn, and "
                f"{self._limits.fit_seconds:g} are allowed: give a policy that is faster"
            )

    def _count_failure(self, reason: str) -> None:
        self._count(reason)
        if self._failed >= self._limits.failures:
            self._stop(f"the shadow failed {self._failed} times in a row, at last: {reason}")

    def _count(self, reason: str) -> None:
        self._failed += 1
        self._live_state.failures[SHADOW_FAILURES] += 1
        LOG.warning("%s: the shadow failed, and decisions go on: %s", self._name, reason)

    def _stop(self, reason: str) -> None:
        LOG.error("%s: the shadow was switched off: %s", self._name, reason)
        self._append(STOPPED, ShadowStopped(reason))

    def _append(self, kind: str, body: object) -> None:
        """Write an event to the stream of the shadow, and read it back."""
        self._live_state.check_exists()
        entry = Entry(kind, ENCODER.encode(body))
        self._store.append(shadow_stream(self._name), [entry]).result()
        with self._lock:
            self._log.follow()
