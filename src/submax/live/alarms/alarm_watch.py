"""Watches a log for what should not happen."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import msgspec
import numpy as np

from submax.live.alarms.alarm_records import (
    CONTEXT,
    MISSING_REWARDS,
    PROPENSITY,
    REWARD_RATE,
    Alarm,
)
from submax.live.alarms.fall_detector import BLOCK, FallDetector
from submax.live.alarms.range_detector import RangeDetector
from submax.live.declaring.settings import Settings
from submax.live.log.ledger import BY_DEFAULT, Parts
from submax.live.log.pages.lean_decision import LeanDecision
from submax.live.log.pages.log_page import LogPage
from submax.live.log.records import DECISION
from submax.schema.context_schema import Number, Value

STATED_DECISIONS = 100_000
"""The number of decisions for which the chance of a false alarm is stated."""
CONTEXTS = msgspec.msgpack.Decoder(list[Value])
NOT_LISTED = b"\xc0"
"""A list of probabilities that is missing, in MessagePack."""


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

    def observe(self, position: int, outcome: str, reward: float | None, parts: Parts) -> None:
        """Note a decision that has matured; an observer of a ledger."""
        if outcome == "learned" and reward is not None:
            self._rewards.append(reward)
        if outcome in ("learned", "without reward"):
            self._came.append(0.0 if parts is BY_DEFAULT else 1.0)

    def read_page(self, page: LogPage, end: int) -> None:
        """Look at the decisions of a page, and at what has matured meanwhile."""
        decisions = [
            body for kind, body in zip(page.kind[:end], page.body, strict=False) if kind == DECISION
        ]
        self._look_at_propensities([one for one in decisions if not one.holdout])
        self._look_at_contexts(decisions)
        self._look_at_rewards()
        if end:
            self.state.position = page.position[end - 1]

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

    def _look_at_propensities(self, decisions: Sequence[LeanDecision]) -> None:
        listed = [one.propensity for one in decisions if bytes(one.probabilities) != NOT_LISTED]
        if not listed:
            return
        least, limit = min(listed), self._settings.alarms.smallest_propensity
        known = math.inf if self.state.smallest is None else self.state.smallest
        if least < limit and least < known:
            sentence = (
                f"an action was drawn with the probability {least:.3g}, which is below the limit "
                f"{limit:g}: estimates from such decisions vary a lot, so raise the minimum"
            )
            alarm = Alarm(PROPENSITY, sentence, {"propensity": least, "limit": limit})
            self.raised.append(Raised(alarm, f"{PROPENSITY} {least!r}"))
        self.state.smallest = min(least, known)

    def _look_at_contexts(self, decisions: Sequence[LeanDecision]) -> None:
        if not self.state.fields or not decisions:
            return
        rows = [CONTEXTS.decode(one.context) for one in decisions]
        places = {name: place for place, name in enumerate(self._settings.context.names)}
        for name, detector in self.state.fields.items():
            values = np.array([row[places[name]] for row in rows], dtype=np.float64)
            for outside in detector.add(values):
                sentence = (
                    f"{outside.values} of 100 values of the context field {name!r} are far outside "
                    f"of what was seen before, {outside.low:.4g} to {outside.high:.4g}, up to "
                    f"{outside.farthest:.4g}"
                )
                numbers = {"low": outside.low, "high": outside.high, "value": outside.farthest}
                alarm = Alarm(CONTEXT, sentence, numbers, subject=name)
                self.raised.append(Raised(alarm, f"{CONTEXT} {detector.seen} {name}"))
