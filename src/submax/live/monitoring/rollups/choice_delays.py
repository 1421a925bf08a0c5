"""How long the rewards of each choice take to come."""

import math
from typing import NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.live.monitoring.rollups.delay_bins import BINS, delay_bins

NEAR_EVENTS = 1024
"""Events after which a quarter of the decisions is still remembered; after four times as many, a
quarter of those, and so on."""
LEVELS = 8
"""Sampling rates, each a quarter of the one before; the last sample reaches back 16.8 million
events. About 6,000 decisions are remembered, in 150 kB."""
MOST_CHOICES = 1024
"""Choices that have sums of their own, the first ones; all others share one more row. With all of
them the sums take 230 kB."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴ divided by the golden ratio: multiples of it are spread evenly modulo 2⁶⁴ (Knuth, The Art of
Computer Programming, volume 3, section 6.4)."""


class DelaySums(NamedTuple):
    """Sums over timed rewards, with a row for each choice.

    ``bins`` counts rewards by delay, and ``late`` those that came after the longest wait; both are
    weighted by the sampling. ``effective`` is the number of equally weighted rewards that would be
    as informative (Kish 1965).
    """

    bins: Floats
    late: Floats
    effective: Floats

    @property
    def total(self) -> Floats:
        """The number of rewards, estimated from the sample."""
        count: Floats = self.bins.sum(axis=-1)
        return count


class ChoiceDelays:
    """Histograms of the time from a decision to its reward, by the choice of the first slot.

    Not all decisions can be remembered until their rewards come, so a sample is: all of the last
    1,024 events, a quarter of those of the last 4,096, and so on. A reward that comes so late that
    a share of 4⁻ʲ of its contemporaries is remembered counts with the weight 4ʲ, so that sums have
    the expected values that they would have without sampling. Which decisions are in a sample
    follows from their positions, so that sums depend on the log alone. ``table`` is another array
    whenever a reward was timed.
    """

    def __init__(self, wait: float = math.inf) -> None:
        """No delays; ``wait`` are the seconds after which a reward is late."""
        self._wait = wait
        # By choice: the bins, the weight of late rewards, and the sum of squared weights.
        self.table: Floats = np.zeros((0, BINS + 2))
        self._position: Integers = np.empty(0, np.int64)
        self._choice: Integers = np.empty(0, np.int64)
        self._at: Floats = np.empty(0)
        self._read_up_to = 0

    @property
    def sums(self) -> DelaySums:
        """The sums of each choice."""
        return delay_sums(self.table)

    @property
    def sums_of_others(self) -> DelaySums:
        """For each choice, the sums of all others."""
        return delay_sums(self.table.sum(axis=0, keepdims=True) - self.table)

    def decided(self, position: Integers, choice: Integers, at: Floats) -> None:
        """Remember decisions that were made, in order."""
        self._position = np.concatenate([self._position, position])
        self._choice = np.concatenate([self._choice, np.minimum(choice, MOST_CHOICES)])
        self._at = np.concatenate([self._at, at])

    def rewarded(self, about: Integers, position: Integers, at: Floats) -> None:
        """Count rewards: the position of the decision, and position and time of the reward."""
        if not len(self._position) or not len(about):
            return
        place = np.searchsorted(self._position, about)
        place = np.minimum(place, len(self._position) - 1)
        level = _needed_level(position - about)
        timed = (self._position[place] == about) & (level <= _levels(about))
        place, weight = place[timed], 4.0 ** level[timed]
        delay = np.maximum(at[timed] - self._at[place], 0.0)
        self._add(self._choice[place], delay, weight)

    def forget(self, position: int) -> None:
        """Forget decisions that are not sampled any more after the event at this position."""
        if position == self._read_up_to:
            return
        self._read_up_to = position
        kept = _needed_level(position - self._position) <= _levels(self._position)
        self._position, self._choice = self._position[kept], self._choice[kept]
        self._at = self._at[kept]

    def _add(self, choice: Integers, delay: Floats, weight: Floats) -> None:
        if not len(choice):
            return
        sums = np.zeros((max(len(self.table), int(choice.max()) + 1), BINS + 2))
        sums[: len(self.table)] = self.table
        np.add.at(sums, (choice, delay_bins(delay)), weight)
        np.add.at(sums[:, BINS], choice, weight * (delay > self._wait))
        np.add.at(sums[:, BINS + 1], choice, weight**2)
        self.table = sums

    def to_record(self) -> "ChoiceDelaysRecord":
        """What ``restore`` needs."""
        columns = self.table, self._position, self._choice, self._at
        return ChoiceDelaysRecord(self._wait, *(one.tobytes() for one in columns))

    @classmethod
    def restore(cls, record: "ChoiceDelaysRecord") -> Self:
        """The delays that were recorded."""
        made = cls(record.wait)
        made.table = np.frombuffer(record.sums).reshape(-1, BINS + 2)
        made._position = np.frombuffer(record.position, np.int64)
        made._choice = np.frombuffer(record.choice, np.int64)
        made._at = np.frombuffer(record.at)
        return made


class ChoiceDelaysRecord(msgspec.Struct, frozen=True, array_like=True):
    """The state of ``ChoiceDelays`` as it is stored."""

    wait: float
    sums: bytes
    position: bytes
    choice: bytes
    at: bytes


def delay_sums(table: Floats) -> DelaySums:
    """The columns of a table of sums."""
    bins, squares = table[:, :BINS], table[:, BINS + 1]
    effective = bins.sum(axis=1) ** 2 / np.maximum(squares, 1.0)
    return DelaySums(bins, table[:, BINS], effective)


def _levels(position: Integers) -> NDArray[np.int64]:
    """The sparsest sample that a position is in: level j has a share of 4⁻ʲ of all positions."""
    # The exponent of a hash that is uniform between 0 and 1 is −k with the chance 2⁻ᵏ⁻¹.
    spread = (position.astype(np.uint64) * GOLDEN).astype(np.float64) / 2.0**64
    exponent = np.frexp(spread)[1].astype(np.int64)
    return np.minimum(-exponent // 2, LEVELS - 1)


def _needed_level(events: Integers) -> NDArray[np.int64]:
    """The lowest level whose decisions are still remembered after this many events.

    It is ``LEVELS`` if no decision is remembered any more.
    """
    ratio = np.maximum(events, 1) / NEAR_EVENTS
    level = np.ceil(np.log2(ratio) / 2).astype(np.int64)
    return np.clip(level, 0, LEVELS)
