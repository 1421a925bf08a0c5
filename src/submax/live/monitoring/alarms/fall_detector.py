"""Detects that a rate has fallen, at any time, with a bound on false alarms."""

import math
from typing import NamedTuple

import msgspec
import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.live.monitoring.alarms.boundary_table import boundary_table
from submax.sequential.mixture_boundary import mixing_precision

BLOCK = 200
"""Observations between two looks, at each of which a new interval begins."""
PLANNED = 1000
"""The number of observations about which an interval is narrowest."""
TYPICAL_VARIANCE = 0.05
"""The variance of observations, as a share of their squared range, that is planned for."""
STARTS_PER_OCTAVE = 8
"""How many beginnings of intervals are kept whose ages differ by a factor of up to two: of 100,000
observations about 60, so that a look takes less than a millisecond."""

LOOKS_AT_ONCE = 32
"""Looks that are computed together: some thousand intervals, for which numpy is fast."""


class Fall(NamedTuple):
    """A fall: the mean ``before`` was at least ``at_least``, and is now at most ``at_most``."""

    at: int
    at_least: float
    at_most: float
    observations: int


class _Start(msgspec.Struct):
    """Sums up to where an interval begins, and the largest lower end that it ever had."""

    count: int
    total: float
    squares: float
    largest_low: float


class FallDetector(msgspec.Struct):
    """Watches numbers whose mean may rise, as that of a bandit that learns does, but not fall.

    After every ``BLOCK`` observations an interval begins that holds the mean of all observations
    since then at all times together, but for a chance of ``error``. If the means never fall, the
    mean since an earlier beginning up to an earlier look is at most the mean since a later one up
    to now. So a lower end that is above a later upper end is an alarm, and it is false only if one
    of the intervals misses its mean: within n observations with a chance of at most
    ``error`` × (1 + n / BLOCK). After an alarm the detector begins anew.

    For observations within ``low`` and ``high`` this holds exactly, otherwise for large samples.

    Reference: Shekhar and Ramdas (2023), detection of changes by confidence sequences that begin at
    every time; the intervals are those of Howard, Ramdas, McAuliffe and Sekhon (2021).
    """

    error: float
    low: float | None = None
    high: float | None = None
    seen: int = 0
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    variance: float = 0.0
    starts: list[_Start] = []

    def add(self, values: Floats) -> list[Fall]:
        """Take further observations into account, and return the falls that they show."""
        found = []
        while len(values):
            room = BLOCK - self.count % BLOCK
            # The first block says how large numbers are; it is not compared with others.
            measures = not self._bounded and not self.variance
            fall, used = self._add_some(values[:room] if measures else values)
            values = values[used:]
            if measures and self.count == BLOCK:
                self.variance = max(self.squares / self.count, 1e-12)
                self._begin()
            elif fall is not None:
                found.append(fall)
                self._begin()
        return found

    @property
    def _bounded(self) -> bool:
        return self.low is not None and self.high is not None

    def _begin(self) -> None:
        self.count, self.total, self.squares, self.starts = 0, 0.0, 0.0, []

    def _add_some(self, values: Floats) -> tuple[Fall | None, int]:
        """Add observations up to the first fall; return the fall, and how many were added."""
        sums = np.cumsum(np.concatenate([[self.total], values]))
        counts = self.count + np.arange(len(values) + 1)
        # Squares are taken around the mean so far, which was known before each observation.
        known = sums[:-1] / np.maximum(counts[:-1], 1)
        if self.count == 0:
            known[0] = self.low or 0.0
        squares = np.cumsum(np.concatenate([[self.squares], (values - known) ** 2]))
        looks = range(BLOCK - self.count % BLOCK, len(values) + 1, BLOCK)
        fall, used = None, len(values)
        if looks and (self._bounded or self.variance):
            fall, used = self._look(np.stack([counts, sums, squares], axis=1), looks)
        self.seen += used
        self.count, self.total = int(counts[used]), float(sums[used])
        self.squares = float(squares[used])
        return fall, used

    def _look(self, sums: Floats, looks: range) -> tuple[Fall | None, int]:
        """Look at all intervals after some numbers of new observations, until there is a fall.

        ``sums`` has count, sum and squares after each number of new observations. Returns the fall,
        and the number of observations up to it.
        """
        known = [msgspec.structs.astuple(one) for one in self.starts] or [(0, 0.0, 0.0, -math.inf)]
        starts: Floats = np.array(known, np.float64)
        for first in range(0, len(looks), LOOKS_AT_ONCE):
            used = looks[first : first + LOOKS_AT_ONCE]
            fall, starts = self._look_at(sums[used], starts)
            if fall is not None:
                count = used[fall.at]
                return fall._replace(at=self.seen + count), count
        self.starts = [_Start(int(count), *rest) for count, *rest in starts.tolist()]
        return None, len(sums) - 1

    def _look_at(self, sums: Floats, starts: Floats) -> tuple[Fall | None, Floats]:
        """Look several times; return the first fall, and the beginnings that are kept.

        ``sums [looks, 3]`` are those at each look, and ``starts [n, 4]`` the beginnings before the
        first of them. At every look an interval begins, for all later looks. The fall is ``at`` the
        number of its look.
        """
        begun = np.column_stack([sums, np.full(len(sums), -math.inf)])
        every = np.concatenate([starts, begun])
        block, now = (one.astype(np.int64) // BLOCK for one in (every[:, 0], sums[:, 0]))
        last_look = np.concatenate([[block[len(starts) - 1]], now[:-1]])
        is_known = (block < now[:, None]) & _is_kept(block, last_look[:, None])
        difference = np.where(is_known[..., None], sums[:, None] - every[:, :3], 1.0)
        count, total, squares = np.moveaxis(difference, -1, 0)
        mean, half = total / count, self._radius(np.maximum(squares, 0.0)) / count
        lows = np.where(is_known, mean - half, -math.inf)
        lows[0] = np.maximum(lows[0], every[:, 3])
        lows = np.maximum.accumulate(lows, axis=0)
        # What an interval that is no longer kept has shown counts for all that begin later.
        before, after = np.maximum.accumulate(lows, axis=1), mean + half
        fallen = is_known & (before > after)
        found = fallen.any(axis=1).nonzero()[0]
        if len(found):
            look = int(found[0])
            which = look, fallen[look].nonzero()[0][-1]
            ends = float(before[which]), float(after[which])
            return Fall(look, *ends, int(count[which])), starts
        kept = _is_kept(block, now[-1]).nonzero()[0]
        left: Floats = every[kept]
        left[:, 3] = np.maximum.reduceat(lows[-1], np.concatenate([[0], kept[:-1] + 1]))
        return None, left

    def _radius(self, variance: Floats) -> Floats:
        """How far sums may be from their means, for each sum of squares."""
        if self.low is None or self.high is None:
            mixing = mixing_precision(PLANNED * self.variance, self.error)
            total = variance + mixing
            found: Floats = np.sqrt(total * (np.log(total / mixing) + 2 * math.log(1 / self.error)))
            return found
        span = self.high - self.low
        table = boundary_table(self.error, PLANNED * TYPICAL_VARIANCE)
        return span * table(variance / span**2)


def _is_kept(block: Integers, now: Integers) -> Booleans:
    """Whether the interval that began with a block is kept after a look at another block.

    It is kept while it is at most ``STARTS_PER_OCTAVE`` times as old as the largest power of two
    that divides the number of its block, so that few are kept. The newest one always is.
    """
    kept: Booleans = (block == 0) | (now - block <= STARTS_PER_OCTAVE * (block & -block))
    return kept
