"""When a live bandit fits its next version, and how many decisions will follow it."""

import math
import time

from submax.live.fitting.ledger_follower import LedgerFollower
from submax.live.serving.live_state import LiveState

MIN_FIRST_ROWS = 10
"""Rows for the first version: with one or two rows a policy would favour an action by chance."""
REST_FACTOR = 2.0
"""The pause between two fits, as a multiple of the time that the last fit took, so that fitting
takes at most a third of the time."""


class FitSchedule:
    """Says what is new since the newest version of a bandit, and whether it is time to fit."""

    def __init__(self, live_state: LiveState, follower: LedgerFollower) -> None:
        self._live_state, self._follower = live_state, follower
        self._fitted_at, self._fit_seconds = time.monotonic(), 0.0

    def fitted(self, seconds: float) -> None:
        """Note that a version was just fitted, and how long that took."""
        self._fitted_at, self._fit_seconds = time.monotonic(), seconds

    def is_time(self) -> bool:
        """Whether a version is to be fitted now: enough new rows or time, or it is outdated."""
        settings, new = self._live_state.projection.settings, self.new_rows()
        waited = time.monotonic() - self._fitted_at
        if waited < REST_FACTOR * self._fit_seconds:
            return False
        fewest_rows = (
            min(settings.refit_rows, MIN_FIRST_ROWS)
            if not self._live_state.projection.versions
            else 1
        )
        waited_enough = waited >= settings.refit_seconds and new >= fewest_rows
        return new >= settings.refit_rows or waited_enough or self.outdated()

    def new_rows(self) -> int:
        """The number of matured decisions that the newest version was not fitted to."""
        versions = self._live_state.projection.versions
        history = self._live_state.projection.history
        rows = len(self._follower.ledger.rows) + (0 if history is None else history.rows)
        return rows - (versions[max(versions)].rows if versions else 0)

    def outdated(self) -> bool:
        """Whether the newest version was fitted for other choices or by another policy."""
        projection = self._live_state.projection
        if not projection.versions:
            return False
        newest = projection.versions[max(projection.versions)]
        return (
            newest.active != projection.menu.active or newest.policy != projection.settings.policy
        )

    def ahead(self) -> int:
        """Return the expected number of decisions before the next version.

        This is the number of rows that are new since the last version, plus the number of decisions
        that have not matured. If the version is fitted because choices or the policy changed,
        return at least the last version's number. Decisions without a reward that never mature are
        not counted.
        """
        counts, versions = self._follower.ledger.counts, self._live_state.projection.versions
        ahead = max(1, self.new_rows())
        if self._follower.ledger.settings.longest_wait < math.inf:
            # Without a limit, decisions whose reward never comes would be counted for ever.
            ahead += counts["decisions"] - counts["matured"]
        return max(ahead, versions[max(versions)].ahead) if self.outdated() else ahead
