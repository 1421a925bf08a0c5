"""What a bandit decided and earned: over time, and with each version."""

import math
from collections.abc import Sequence
from copy import copy
from threading import Lock
from typing import Self

import msgspec
import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.live.background import BACKGROUND
from submax.live.monitoring.rollups.added_numbers import AddedNumbers
from submax.live.monitoring.rollups.choice_delays import ChoiceDelays, ChoiceDelaysRecord
from submax.live.monitoring.rollups.context_sums import ContextSums, ContextSumsRecord
from submax.live.monitoring.rollups.counted_columns import (
    CameRewards,
    Counted,
    CountedDecisions,
    LearnedDecisions,
    Made,
    MaturedOutcome,
)
from submax.live.monitoring.rollups.decision_sums import COLUMNS, made, matured
from submax.live.monitoring.rollups.keyed_sums import KeyedSums, KeyedSumsRecord
from submax.live.monitoring.rollups.tier import RESOLUTIONS, Tier, TierRecord
from submax.schema.context import ContextSchema

MOST_WAITING = 8192
"""Decisions and events that wait until they are added."""
MOST_VERSIONS = 1000
"""Versions whose sums are kept, the newest."""


class Rollups:
    """Sums that are kept while a log is read, so that pages need not read it.

    ``tiers`` has sums by time in several resolutions, and ``versions`` sums by version; those by
    choice are in ``ActionTally``. ``contexts`` has sums by values of the context. The memory is
    bounded, however long the log is. One thread counts, and any number of threads may look at a
    copy.
    """

    def __init__(
        self, slots: int = 1, schema: ContextSchema | None = None, wait: float = math.inf
    ) -> None:
        """Rollups of no decision; ``slots`` is the number of slots with choices.

        ``wait`` are the seconds after which a reward is late.
        """
        self._tiers = [Tier(resolution) for resolution in RESOLUTIONS]
        self._versions = KeyedSums(COLUMNS, 2 * MOST_VERSIONS, MOST_VERSIONS)
        self._delays = ChoiceDelays(wait)
        self._contexts = ContextSums.of(schema or ContextSchema(), slots)
        self._least_propensity = 1.0
        self._slots = slots
        # Added many at a time, or when somebody looks at the sums, because adding one takes as long
        # as adding a thousand.
        self._adding = Lock()
        self._decisions: list[Counted] = []
        self._came: list[CameRewards] = []
        self._last = 0
        self._made: list[Made] = []
        self._learned: list[LearnedDecisions] = []
        self._count = 0

    @property
    def tiers(self) -> list[Tier]:
        """The sums by time."""
        self._add()
        return self._tiers

    @property
    def versions(self) -> KeyedSums:
        """The sums by version, of decisions that were not held out and of those that were."""
        self._add()
        return self._versions

    @property
    def delays(self) -> ChoiceDelays:
        """How long rewards took, by choice of the first slot; 0 if there are no slots."""
        self._add()
        with self._adding:
            self._delays.forget(self._last)
        return self._delays

    @property
    def contexts(self) -> ContextSums:
        """The sums by values of the context."""
        self._add()
        return self._contexts

    @property
    def least_propensity(self) -> float:
        """The smallest propensity of a decision that has matured; 1 if there is none."""
        self._add()
        return self._least_propensity

    def read(self, rewards: CameRewards, last: int) -> None:
        """Count how long rewards took; ``last`` is the position up to which the log was read."""
        self._last = last
        if len(rewards.at):
            self._came.append(rewards)
            self._wait_for(len(rewards.at))

    def decided(self, at: Floats, decisions: CountedDecisions) -> None:
        """Count decisions that were made at these times."""
        if len(at):
            self._decisions.append(self._counted(at, decisions, None))
            self._made.append(Made(decisions.context, decisions.action, decisions.position, at))
            self._wait_for(len(at))

    def learned(self, rows: LearnedDecisions) -> None:
        """Count decisions that were learned from, by the values of their contexts."""
        self._learned.append(rows)
        self._wait_for(len(rows.reward))

    def matured(
        self,
        at: Floats,
        decisions: CountedDecisions,
        reward: Floats,
        rewarded: Booleans,
        weight: Floats,
    ) -> None:
        """Count decisions that have matured at these times.

        ``rewarded`` says which got a reward; the others count with the reward that they were given
        by default. ``weight`` is how much each counts in weighted means.
        """
        if len(at):
            outcome = MaturedOutcome(reward, rewarded, weight, decisions.propensity)
            self._decisions.append(self._counted(at, decisions, outcome))
            self._wait_for(len(at))

    def _counted(
        self, at: Floats, decisions: CountedDecisions, outcome: MaturedOutcome | None
    ) -> Counted:
        action = decisions.action[:, : self._slots]
        return Counted(at, action, decisions.version, decisions.holdout, outcome)

    def _wait_for(self, count: int) -> None:
        self._count += count
        if self._count >= MOST_WAITING:
            self._add()

    def _add(self) -> None:
        """Add what waits; the sums do not depend on when this is called."""
        with self._adding:
            if self._count:
                self._add_waiting()

    def _add_waiting(self) -> None:
        decisions, came = self._decisions, self._came
        self._decisions, self._came, self._count = [], [], 0
        self._add_made()
        BACKGROUND.give_way()
        if came:
            self._delays.rewarded(*map(np.concatenate, zip(*came, strict=True)))
        # Decisions are forgotten only now, because a reward may be about a decision that was read
        # together with it.
        self._delays.forget(self._last)
        if not decisions:
            return
        at, action, version, holdout, outcomes = zip(*decisions, strict=True)
        rows = AddedNumbers(np.concatenate([*map(_columns, at, outcomes)], axis=1))
        times = np.concatenate(at)
        group = np.concatenate(holdout).astype(np.int64)
        choices = np.concatenate(action).astype(np.int64)
        for tier in self._tiers:
            BACKGROUND.give_way()
            tier.add(times, group, choices, rows)
        self._versions.add(np.concatenate(version).astype(np.int64), group, rows)
        known = [one.propensity.min() for one in outcomes if one is not None]
        self._least_propensity = float(min(self._least_propensity, *known, 1.0))

    def _add_made(self) -> None:
        made, learned = self._made, self._learned
        self._made, self._learned = [], []
        if made:
            context, action, position, at = map(np.concatenate, zip(*made, strict=True))
            self._contexts.decided(context, action)
            BACKGROUND.give_way()
            choice = action[:, 0] if self._slots else np.zeros(len(at))
            self._delays.decided(position, choice.astype(np.int64), at)
        if learned:
            BACKGROUND.give_way()
            self._contexts.learned(*map(np.concatenate, zip(*learned, strict=True)))

    def copy(self) -> Self:
        """Rollups with the same sums; what is added to one is not added to the other.

        Arrays are shared, because none of them is ever changed: additions make new ones. What waits
        is added to the copy when somebody looks at it, and most copies nobody looks at.
        """
        made = copy(self)
        made._adding = Lock()
        made._decisions, made._came = list(self._decisions), list(self._came)
        made._made, made._learned = list(self._made), list(self._learned)
        made._tiers = [one.copy() for one in self._tiers]
        made._versions, made._delays = copy(self._versions), copy(self._delays)
        made._contexts = self._contexts.copy()
        return made

    def to_record(self) -> "RollupsRecord":
        """What ``restore`` needs."""
        return RollupsRecord(
            [tier.to_record() for tier in self.tiers],
            self.versions.to_record(),
            self.delays.to_record(),
            self.least_propensity,
            self._slots,
            self.contexts.to_record(),
        )

    @classmethod
    def restore(cls, record: "RollupsRecord") -> Self:
        """The rollups that were recorded."""
        rollups = cls(record.slots)
        known = {one.seconds: one for one in record.tiers}
        for tier in rollups.tiers:
            tier.restore(known[tier.resolution.seconds])
        rollups._versions.restore(record.versions)
        rollups._delays = ChoiceDelays.restore(record.delays)
        rollups._least_propensity = record.least_propensity
        rollups._contexts = ContextSums.restore(record.contexts)
        return rollups


class RollupsRecord(msgspec.Struct, frozen=True, array_like=True):
    """The state of rollups as it is stored in a snapshot."""

    tiers: Sequence[TierRecord]
    versions: KeyedSumsRecord
    delays: ChoiceDelaysRecord
    least_propensity: float
    slots: int
    contexts: ContextSumsRecord


def _columns(at: Floats, outcome: MaturedOutcome | None) -> Floats:
    """The columns of sums of decisions that were made, or that have matured."""
    if outcome is None:
        return made(len(at))
    return matured(outcome.reward, outcome.rewarded, outcome.weight)
