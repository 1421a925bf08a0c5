"""Watches a log for what should not happen."""

import math
from typing import NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.bandit.active_version import MAX_LOGGED_PROBABILITIES
from submax.bandit.settings import Settings
from submax.core.arrays import Floats
from submax.live.background import BACKGROUND
from submax.live.log.outcomes import LEARNED, WITHOUT_REWARD, Outcomes
from submax.live.log.pages.log_page import LogPage
from submax.live.monitoring.alarms.alarm_records import (
    CONTEXT,
    MISSING_REWARDS,
    PROPENSITY,
    REWARD_RATE,
    Alarm,
)
from submax.live.monitoring.alarms.fall_detector import BLOCK, FallDetector
from submax.live.monitoring.alarms.range_detector import RangeDetector
from submax.schema.context import Number

STATED_DECISIONS = 100_000
"""The number of decisions for which the chance of a false alarm is stated."""


class Raised(NamedTuple):
    """An alarm, and a key that is the same if the same log is read again."""

    alarm: Alarm
    key: str


class WatchState(msgspec.Struct):
    """What was learned from the log up to ``position``."""

    position: int
    rewards: FallDetector
    came: FallDetector
    fields: dict[str, RangeDetector]
    smallest: float | None = None


class AlarmWatch:
    """Observes a ledger: rewards of decisions that mature, and pages of decisions.

    ``raised`` are alarms that nobody has written yet; ``state`` is everything that was learned.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.raised: list[Raised] = []
        self._rewards: list[float] = []
        self._came: list[float] = []
        self.begin(0)

    def begin(self, position: int, saved: WatchState | None = None) -> None:
        """Go on at a position with what was saved there, or begin anew."""
        self.raised, self._rewards, self._came = [], [], []
        if saved is not None and saved.position == position:
            self.state = saved
            return
        error = self._error(self._settings)
        bounds = self._settings.scale.bounds or (None, None)
        names, fields = self._settings.context.names, self._settings.context.fields
        self.state = WatchState(
            position,
            FallDetector(error, *bounds),
            FallDetector(error, 0.0, 1.0),
            {
                name: RangeDetector()
                for name, field in zip(names, fields, strict=True)
                if isinstance(field, Number)
            },
        )

    @staticmethod
    def _error(settings: Settings) -> float:
        """The error of each interval, so that all together have the chance that is declared."""
        return settings.alarms.false_alarms / (1 + STATED_DECISIONS / BLOCK)

    def use(self, settings: Settings) -> Self:
        """Take new settings into account."""
        self._settings = settings
        self.state.rewards.error = self.state.came.error = self._error(settings)
        return self

    def matured(self, position: NDArray[np.int64], outcomes: Outcomes) -> None:
        """Note decisions that have matured; called by a ledger."""
        learned = outcomes.status == LEARNED
        counted = learned | (outcomes.status == WITHOUT_REWARD)
        self._rewards += outcomes.reward[learned].tolist()
        self._came += (learned & ~outcomes.by_default)[counted].astype(np.float64).tolist()

    def late_rewards(self, position: NDArray[np.int64]) -> None:
        """Do nothing: late rewards are counted by the ledger."""

    def read_page(self, page: LogPage, begin: int, end: int) -> None:
        """Look at the decisions of a page, and at what has matured meanwhile."""
        first, stop = np.searchsorted(page.decisions, [begin, end]).tolist()
        if first < stop:
            drawn = ~page.made.holdout[first:stop]
            self._look_at_propensities(page.made.propensity[first:stop][drawn])
            self._look_at_contexts(page, first, stop)
            BACKGROUND.give_way()
        self._look_at_rewards()
        self.state.position = int(page.position[end - 1])

    def _look_at_rewards(self) -> None:
        for kind, values, detector, what in (
            (REWARD_RATE, self._rewards, self.state.rewards, "the mean reward of a decision"),
            (MISSING_REWARDS, self._came, self.state.came, "the share of decisions with a reward"),
        ):
            for fall in detector.add(np.array(values)):
                sentence = (
                    f"{what} has fallen: it was at least {fall.at_least:.4g} for a while, and is "
                    f"at most {fall.at_most:.4g} in the last {fall.observations} decisions"
                )
                numbers = {"before": fall.at_least, "now": fall.at_most}
                alarm = Alarm(kind, sentence, {**numbers, "decisions": float(fall.observations)})
                self.raised.append(Raised(alarm, f"{kind} {fall.at}"))
            values.clear()

    def _look_at_propensities(self, propensities: Floats) -> None:
        menu = self._settings.menu
        joint = math.prod(map(len, menu.active))
        # Of many joint actions, or of numbers, every single one is improbable.
        if not len(propensities) or menu.ranges or joint > MAX_LOGGED_PROBABILITIES:
            return
        least, limit = float(propensities.min()), self._settings.alarms.smallest_propensity
        known = math.inf if self.state.smallest is None else self.state.smallest
        if least < limit and least < known:
            sentence = (
                f"an action was drawn with the probability {least:.3g}, which is below the limit "
                f"{limit:g}: estimates from such decisions vary a lot, so raise the minimum"
            )
            alarm = Alarm(PROPENSITY, sentence, {"propensity": least, "limit": limit})
            self.raised.append(Raised(alarm, f"{PROPENSITY} {least!r}"))
        self.state.smallest = min(least, known)

    def _look_at_contexts(self, page: LogPage, first: int, stop: int) -> None:
        if not self.state.fields:
            return
        schema = self._settings.context
        encoded = page.made.encoded_contexts(schema)[first:stop]
        # Numbers have one column each, in the order of the fields.
        columns = encoded[:, np.flatnonzero(schema.numeric)].astype(np.float64)
        for (name, detector), values in zip(self.state.fields.items(), columns.T, strict=True):
            for outside in detector.add(values):
                sentence = (
                    f"{outside.values} of 100 values of the context field {name!r} are far outside "
                    f"of what was seen before, {outside.low:.4g} to {outside.high:.4g}, up to "
                    f"{outside.farthest:.4g}"
                )
                numbers = {"low": outside.low, "high": outside.high, "value": outside.farthest}
                alarm = Alarm(CONTEXT, sentence, numbers, subject=name)
                self.raised.append(Raised(alarm, f"{CONTEXT} {outside.at} {name}"))
