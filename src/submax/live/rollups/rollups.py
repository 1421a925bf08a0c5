"""What a bandit decided and earned: over time, and with each version."""

from collections.abc import Sequence
from copy import copy
from typing import Protocol, Self

import msgspec
import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.live.rollups.delays import Delays, DelaysRecord
from submax.live.rollups.keyed_sums import KeyedSums, KeyedSumsRecord
from submax.live.rollups.sums import COLUMNS, made, matured
from submax.live.rollups.tier import RESOLUTIONS, Tier, TierRecord

MOST_VERSIONS = 1000
"""Versions whose sums are kept, the newest."""


class CountedDecisions(Protocol):
    """Columns of decisions: ``action`` begins with the index of the choice of each slot."""

    @property
    def action(self) -> Floats: ...
    @property
    def propensity(self) -> Floats: ...
    @property
    def version(self) -> Integers: ...
    @property
    def holdout(self) -> Booleans: ...


class Rollups:
    """Sums that are kept while a log is read, so that pages need not read it.

    ``tiers`` has sums by time in several resolutions, and ``versions`` sums by version; those by
    choice are in ``ActionTally``. The memory is bounded, however long the log is.
    """

    def __init__(self, slots: int = 1) -> None:
        """Rollups of no decision; ``slots`` is the number of slots with choices."""
        self.tiers = [Tier(resolution) for resolution in RESOLUTIONS]
        self.versions = KeyedSums(COLUMNS, 2 * MOST_VERSIONS, MOST_VERSIONS)
        self.delays = Delays()
        self.least_propensity = 1.0
        self._slots = slots

    def decided(self, at: Floats, decisions: CountedDecisions) -> None:
        """Count decisions that were made at these times."""
        self._add(at, decisions, made(len(at)))

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
        self._add(at, decisions, matured(reward, rewarded, weight))
        self.least_propensity = float(np.min(decisions.propensity, initial=self.least_propensity))

    def _add(self, at: Floats, decisions: CountedDecisions, rows: Floats) -> None:
        if not len(rows):
            return
        group = decisions.holdout.astype(np.int64)
        choices = decisions.action[:, : self._slots].astype(np.int64)
        for tier in self.tiers:
            tier.add(at, group, choices, rows)
        self.versions.add(decisions.version.astype(np.int64), group, rows)

    def copy(self) -> Self:
        """Rollups with the same sums; what is added to one is not added to the other.

        Arrays are shared, because none of them is ever changed: additions make new ones.
        """
        made = copy(self)
        made.tiers = [one.copy() for one in self.tiers]
        made.versions, made.delays = copy(self.versions), copy(self.delays)
        return made

    def to_record(self) -> "RollupsRecord":
        """What ``restore`` needs."""
        return RollupsRecord(
            [tier.to_record() for tier in self.tiers],
            self.versions.to_record(),
            self.delays.to_record(),
            self.least_propensity,
            self._slots,
        )

    @classmethod
    def restore(cls, record: "RollupsRecord") -> Self:
        """The rollups that were recorded."""
        rollups = cls(record.slots)
        known = {one.seconds: one for one in record.tiers}
        for tier in rollups.tiers:
            tier.restore(known[tier.resolution.seconds])
        rollups.versions.restore(record.versions)
        rollups.delays.restore(record.delays)
        rollups.least_propensity = record.least_propensity
        return rollups


class RollupsRecord(msgspec.Struct, frozen=True, array_like=True):
    """The state of rollups as it is stored in a snapshot."""

    tiers: Sequence[TierRecord]
    versions: KeyedSumsRecord
    delays: DelaysRecord
    least_propensity: float
    slots: int
