"""How long rewards take to come."""

import math

import msgspec
import numpy as np

from submax.core.arrays import Floats, Integers

STRIDE = 1024
"""Events between two whose times are remembered."""
REMEMBERED = 4096
"""Times that are remembered."""
BINS = 26
"""Bins of delays: below 1 s, 1 to 2 s, 2 to 4 s, …, and more than 2²⁴ s, about half a year."""


class Delays:
    """A histogram of the time from a decision to its reward.

    The times of all decisions would be too many to remember, so the time of every 1024th event is,
    and the time of a decision lies between those of its neighbours. Histogram bins double in
    length, so that this error hardly matters.
    """

    def __init__(self) -> None:
        self.counts: Integers = np.zeros(BINS, np.int64)
        self._position: Integers = np.empty(0, np.int64)
        self._at: Floats = np.empty(0)

    def add(
        self,
        position: Integers,
        at: Floats,
        about: Integers,
        reward_position: Integers,
        reward_at: Floats,
    ) -> None:
        """Count the rewards among events, which are in order."""
        self.seen(position, at)
        self.rewarded(about, reward_position, reward_at)

    def seen(self, position: Integers, at: Floats) -> None:
        """Remember the time of some of the events of a page of the log, which are in order."""
        last = int(self._position[-1]) // STRIDE if len(self._position) else -1
        block = position // STRIDE
        first = np.diff(block, prepend=last) > 0
        # Twice as many as are used: what is used must not depend on how the log was read.
        self._position = np.append(self._position, position[first])[-2 * REMEMBERED :]
        self._at = np.append(self._at, at[first])[-2 * REMEMBERED :]

    def rewarded(self, about: Integers, position: Integers, at: Floats) -> None:
        """Count rewards: the position of the decision, and position and time of the reward."""
        if not len(about) or not len(self._position):
            return
        oldest = (position // STRIDE - REMEMBERED) * STRIDE
        about = np.maximum(about, oldest)
        before = np.maximum(np.searchsorted(self._position, about, side="right") - 1, 0)
        after = np.minimum(before + 1, len(self._position) - 1)
        # The next remembered event counts only if it was in the log before the reward.
        known = (self._position[after] < position) & (after > before)
        end, end_at = (
            np.where(known, self._position[after], position),
            np.where(known, self._at[after], at),
        )
        begin, begin_at = self._position[before], self._at[before]
        share = np.clip((about - begin) / np.maximum(end - begin, 1), 0.0, 1.0)
        delay = at - (begin_at + share * (end_at - begin_at))
        self.counts = self.counts + np.bincount(delay_bins(delay), minlength=BINS)

    def to_record(self) -> "DelaysRecord":
        """What ``restore`` needs."""
        return DelaysRecord(self.counts.tolist(), self._position.tobytes(), self._at.tobytes())

    def restore(self, record: "DelaysRecord") -> None:
        """Take the state that was recorded."""
        self.counts = np.array(record.counts, np.int64)
        self._position = np.frombuffer(record.position, np.int64)
        self._at = np.frombuffer(record.at)


class DelaysRecord(msgspec.Struct, frozen=True, array_like=True):
    """The state of ``Delays`` as it is stored."""

    counts: list[int]
    position: bytes
    at: bytes


def delay_bins(delay: Floats) -> Integers:
    """The bin of each delay in seconds."""
    place = np.ceil(np.log2(np.maximum(delay, 0.5))).astype(np.int64)
    return np.clip(place, 0, BINS - 1)


def bounds(place: int) -> tuple[float, float]:
    """The shortest and the longest delay of a bin, in seconds."""
    low = 0.0 if place == 0 else 2.0 ** (place - 1)
    return low, math.inf if place == BINS - 1 else 2.0**place
