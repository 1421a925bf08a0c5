"""Detects that a rate has fallen, at any time, with a bound on false alarms."""

import math
from typing import NamedTuple

import msgspec
import numpy as np

from submax.core.arrays import Floats
from submax.live.alarms.boundary_table import boundary_table
from submax.live.lift.mixture_boundary import mixing_precision

BLOCK = 200
"""Observations between two looks, at each of which a new interval begins."""
PLANNED = 1000
"""The number of observations about which an interval is narrowest."""
TYPICAL_VARIANCE = 0.05
"""The variance of observations, as a share of their squared range, that is planned for."""
STARTS_PER_OCTAVE = 8
"""How many beginnings of intervals are kept whose ages differ by a factor of up to two: of 100,000
observations about 60, so that a look takes less than a millisecond."""


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
            part, values = values[:room], values[room:]
            self._add_part(part)
            if self.count % BLOCK == 0:
                fall = self._look()
                if fall is not None:
                    found.append(fall)
                    self._begin()
        return found

    @property
    def _bounded(self) -> bool:
        return self.low is not None and self.high is not None

    def _begin(self) -> None:
        self.count, self.total, self.squares, self.starts = 0, 0.0, 0.0, []

    def _add_part(self, part: Floats) -> None:
        if not self.starts:
            self._note_start()
        # Squares are taken around the mean so far, which was known before each observation.
        sums = np.cumsum(np.concatenate([[self.total], part]))
        counts = self.count + np.arange(len(part))
        middle = self.low or 0.0
        known = np.where(counts > 0, sums[:-1] / np.maximum(counts, 1), middle)
        self.seen += len(part)
        self.count += len(part)
        self.total = float(sums[-1])
        self.squares += float(((part - known) ** 2).sum())

    def _note_start(self) -> None:
        self.starts.append(_Start(self.count, self.total, self.squares, -math.inf))

    def _look(self) -> Fall | None:
        """Compare all intervals now, and begin another one."""
        if not self._bounded and not self.variance:
            # The first block says how large numbers are; it is not compared with others.
            self.variance = max(self.squares / self.count, 1e-12)
            self._begin()
            return None
        count = np.array([self.count - one.count for one in self.starts])
        mean = np.array([self.total - one.total for one in self.starts]) / count
        squares = np.array([self.squares - one.squares for one in self.starts])
        half = self._radius(np.maximum(squares, 0.0)) / count
        for start, low in zip(self.starts, (mean - half).tolist(), strict=True):
            start.largest_low = max(start.largest_low, low)
        before = np.maximum.accumulate([one.largest_low for one in self.starts])
        fallen = np.flatnonzero(before > mean + half)
        if len(fallen):
            place = int(fallen[-1])
            now = float((mean + half)[place])
            return Fall(self.seen, float(before[place]), now, int(count[place]))
        self._thin()
        self._note_start()
        return None

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

    def _thin(self) -> None:
        """Keep few beginnings; what one that goes has shown is known to the next one.

        The beginning of block k is kept while it is at most ``STARTS_PER_OCTAVE`` times as old as
        the largest power of two that divides k.
        """
        kept: list[_Start] = []
        for start in reversed(self.starts):
            block, age = start.count // BLOCK, (self.count - start.count) // BLOCK
            if block == 0 or age <= STARTS_PER_OCTAVE * (block & -block):
                kept.append(start)
            else:
                kept[-1].largest_low = max(kept[-1].largest_low, start.largest_low)
        self.starts = kept[::-1]
