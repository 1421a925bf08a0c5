"""Compares a shadow with the policy that decides, on decisions that have matured."""

import numpy as np
from numpy.typing import NDArray

from submax.bandit.lift import Lift, UnitSample
from submax.bandit.settings import Settings
from submax.live.archive.log_reader import LogReader
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.ledger import ledger_of
from submax.live.log.outcomes import LEARNED, Outcomes
from submax.live.log.rows.row_segments import ForgottenSegments
from submax.live.monitoring.shadow.shadow_log import ShadowLog
from submax.live.monitoring.shadow.shadow_report import ShadowReport, lift_fields
from submax.live.monitoring.shadow.shadow_tally import ShadowTally
from submax.live.store.store import Store


class ShadowComparison:
    """Follows the log from where a shadow began, with a ledger of its own.

    Everything follows from the log and the stream of the shadow, so that every process finds the
    same, and nothing is lost by a restart. Decisions of one unit depend on each other; the first
    one of each unit counts.
    """

    def __init__(self, store: Store, name: str, settings: Settings, log: ShadowLog) -> None:
        assert log.started is not None, "there is a shadow"
        self.started, self._log = log.started, log
        self._bounds = settings.scale.bounds
        start = settings.default_reward or 0.0 if self._bounds is None else self._bounds[0]
        self.tally = ShadowTally(start)
        self._units, self._reader = UnitSample({}), LogReader(store, name)
        self._found: list[tuple[float, float, float]] = []
        self._ledger = ledger_of(store, name, settings, self, ForgottenSegments())
        self._ledger.read_position = self._ledger.second.settled = log.started.after

    def follow(self) -> None:
        """Take decisions into account that have matured, as far as the shadow has judged."""
        until = self._before_next_decision()
        if until > self._ledger.read_position:
            self._ledger.follow(until=until)
        if self._found:
            reward, weight, clipped = np.array(self._found).T
            self.tally = self.tally.add(reward, weight, clipped, self._bounds)
            self._found = []

    def _before_next_decision(self) -> int:
        """The last position before the first decision that was not judged."""
        judged = self._log.judged
        page = self._reader.read_page(judged)
        decisions = page.position[page.decisions]
        later = decisions[decisions > judged]
        if len(later):
            return int(later[0]) - 1
        return max(judged, int(page.position[-1])) if len(page) else judged

    def lift(self) -> Lift:
        """The difference in value between the shadow and the bandit."""
        return self.tally.lift(self._bounds)

    def matured(self, position: NDArray[np.int64], outcomes: Outcomes) -> None:
        """Note decisions that have matured; called by the ledger."""
        learned = outcomes.status == LEARNED
        rewards = outcomes.reward[learned].tolist()
        for place, reward in zip(position[learned].tolist(), rewards, strict=True):
            opinion = self._log.at(place)
            if opinion is None:
                continue
            chance, propensity, clipped, unit = opinion
            if unit is None or self._units.is_new(unit):
                self._found.append((reward, chance / propensity, clipped))

    def late_rewards(self, position: NDArray[np.int64]) -> None:
        """Do nothing: late rewards are not learned from."""


def report_of(
    settings: Settings, log: ShadowLog, comparison: ShadowComparison | None, failures: int = 0
) -> ShadowReport:
    """The report about the shadow of the settings; without a comparison it has not begun."""
    if settings.shadow is None:
        return ShadowReport(state="none", failures=failures)
    if comparison is None:
        return ShadowReport(state="running", policy=settings.shadow, failures=failures)
    newest = log.versions[max(log.versions)] if log.versions else None
    return ShadowReport(
        state="running" if log.stopped is None else "stopped",
        policy=settings.shadow,
        reason=log.stopped,
        version=0 if newest is None else newest.version,
        rows=0 if newest is None else newest.rows,
        judged=log.opinions,
        compared=comparison.tally.decisions,
        failures=failures,
        **lift_fields(comparison.lift()),
    )


def stored_report(store: Store, name: str) -> ShadowReport:
    """The report about the shadow of a bandit that is not open here; nothing is written."""
    settings, log = SettingsProjection.of(store, name).settings, ShadowLog(store, name)
    log.follow()
    if not log.is_of(settings):
        return report_of(settings, log, None)
    comparison = ShadowComparison(store, name, settings, log)
    comparison.follow()
    return report_of(settings, log, comparison)
