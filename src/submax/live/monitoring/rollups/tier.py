"""Sums by time, in intervals of one length."""

from copy import copy
from typing import NamedTuple, Self

import msgspec
import numpy as np

from submax.core.arrays import Floats, Integers
from submax.live.monitoring.rollups.added_numbers import AddedNumbers
from submax.live.monitoring.rollups.decision_sums import COLUMNS, SERIES
from submax.live.monitoring.rollups.keyed_sums import KeyedSums, KeyedSumsRecord

MOST_CELLS = 32_768
"""Cells of one tier with decisions of a choice in an interval: 1 MB. A bandit with more than a
hundred choices keeps fewer intervals of each choice."""
CHOICE_BITS = 24
"""Bits of the number of a choice; the number of its slot is above them."""


class Resolution(NamedTuple):
    """How long an interval is, in seconds, and how many intervals are kept."""

    seconds: int
    intervals: int


RESOLUTIONS = (
    Resolution(60, 180),
    Resolution(15 * 60, 192),
    Resolution(6 * 3600, 240),
    Resolution(24 * 3600, 800),
)
"""Three hours of minutes, two days of quarters of an hour, two months of quarters of a day, and two
years of days."""


class Tier:
    """Sums of one resolution: by group (bandit or holdout) with all columns, by choice with few."""

    def __init__(self, resolution: Resolution) -> None:
        self.resolution = resolution
        kept = resolution.intervals
        self.groups = KeyedSums(COLUMNS, MOST_CELLS, kept)
        self.choices = KeyedSums(len(SERIES), MOST_CELLS, kept)

    def add(self, at: Floats, group: Integers, choices: Integers, rows: AddedNumbers) -> None:
        """Add rows of sums at these times; choices get the columns of ``SERIES``.

        ``choices`` has a row for each decision and a column for each slot.
        """
        # The same as the division of floats, which takes fifty times as long.
        interval = np.floor(at).astype(np.int64) // self.resolution.seconds
        self.groups.add(interval, group, rows)
        for slot in range(choices.shape[1]):
            self.choices.add(interval, choice_key(slot, choices[:, slot]), rows.select(SERIES))

    def copy(self) -> Self:
        """A tier with the same sums, see ``Rollups.copy``."""
        made = copy(self)
        made.groups, made.choices = copy(self.groups), copy(self.choices)
        return made

    def to_record(self) -> "TierRecord":
        """What ``restore`` needs."""
        return TierRecord(
            self.resolution.seconds, self.groups.to_record(), self.choices.to_record()
        )

    def restore(self, record: "TierRecord") -> Self:
        """Take the state that was recorded."""
        self.groups.restore(record.groups)
        self.choices.restore(record.choices)
        return self


class TierRecord(msgspec.Struct, frozen=True, array_like=True):
    """The state of a tier as it is stored."""

    seconds: int
    groups: KeyedSumsRecord
    choices: KeyedSumsRecord


def choice_key(slot: int, choice: Integers) -> Integers:
    """The number of a choice among those of all slots."""
    return (slot << CHOICE_BITS) | choice
