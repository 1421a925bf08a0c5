"""The fitted smoothing constant of two levels, followed from one decision to the next."""

from typing import NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Booleans, Floats, Integers
from submax.estimators.fitted_smoothing import CLOSE, FURTHEST, NEARBY, WIDTH

STEPS = 60
"""Largest number of Newton steps for one decision."""
FOLLOWED = 8
"""The derivatives are computed again after this many decisions. In between the first one is
followed: an observation changes it by a known amount, and the second one hardly changes."""
NEAR = 0.005
"""A longer step of the logarithm than this is searched for, and not taken by the old derivatives:
their error grows with the square of the step."""

FORESEEN = 0.1
"""Longest step of the logarithm that is foreseen by three derivatives: their error grows with the
third power of the step, and is then about that at which a search ends."""
APART = 0.05
"""Distance of the logarithms at which slopes are compared for the higher derivatives."""
FLATTEST = 1e-3
"""Lower bound of the negated second derivative, by which steps are divided."""


class ForeseenPulls(NamedTuple):
    """The arms of n decisions to come, ``[n, W]``.

    The level was counted ``before`` times for the arm, ``counted`` is 1 if it is counted once more,
    and ``pulled`` is one more than the number of pulls.
    """

    counted: Floats
    before: Floats
    pulled: Floats


class FittedConstant:
    """The constant c of ``fitted_smoothing`` for two levels, of which the other one has constant 1.

    With n the counts of the level and p the pulls of each of A arms, c is where the derivative of
    the log-posterior by ln c is zero: c (Σ ψ(n + c) − Σ ψ(p + c + 1)) + A − ln(c) / 9. A pull that
    has the level adds c / (n + c) − c / (p + c + 1) to this derivative, another pull only the
    second term. If the pulls move c but little, c follows by one step; else c is searched for,
    from the last one on.
    ``value [R, 1]`` is c, ``counts [R, A]`` is n and ``pulls [R, A]`` is p + 1.
    """

    def __init__(self, replicas: int, arms: int) -> None:
        self.value = np.ones((replicas, 1))
        self._rows = np.zeros((2, replicas, arms))
        self.counts, self.pulls = self._rows
        self.pulls += 1.0
        self._logarithm = np.zeros((replicas, 1))
        self._bend = np.ones((replicas, 1))
        self._change = np.zeros((replicas, 1))
        self._until_search = 0
        self._at_present: tuple[Floats, Floats, Floats] | None = None

    def restart(self, replicas: Booleans, counts: Floats) -> None:
        """Begin again in some replicas, because another level has become the rarest."""
        self._logarithm[replicas] = 0.0
        self.value[replicas] = 1.0
        self.counts[replicas] = counts[replicas]
        self._until_search = 0
        self._at_present = None

    def add(self, place: Integers, counted: Floats) -> None:
        """Add a pull of one arm in each replica; ``counted`` is 1 if it had the level, else 0."""
        counts, pulls, value = self.counts.reshape(-1), self.pulls.reshape(-1), self.value[:, 0]
        before, pulled = counts[place], pulls[place]
        counts[place] = before + counted
        pulls[place] = pulled + 1.0
        change = counted / (before + value)
        change -= 1.0 / (pulled + value)
        change *= value
        self._change = change[:, None]

    def foreseen(self, pulls: ForeseenPulls, replicas: Integers) -> Floats | None:
        """Return the constants before each of n decisions in W ``replicas``, ``[n, W]``.

        The first two derivatives follow from the pulls, and the third one hardly changes. None if
        these derivatives do not reach that far.
        """
        value = self.value[replicas, 0]
        level, pull = pulls.counted / (pulls.before + value), 1.0 / (pulls.pulled + value)
        slope, bend, rise = (one[replicas, 0] for one in self._derivatives())
        slope = slope + value * _sums_before(level - pull)
        bend = bend - value * _sums_before(
            pulls.before * level * level - pulls.pulled * pull * pull
        )
        if bend.min() <= FLATTEST:
            return None
        step = slope / bend
        step -= rise * step * step / (2.0 * bend)
        if np.maximum.reduce(np.abs(step), axis=None) > FORESEEN:
            return None
        constants: Floats = np.exp(step) * value
        return constants

    def _derivatives(self) -> tuple[Floats, Floats, Floats]:
        """Return the slope, the bend, and the derivative of the bend, each ``[R, 1]``."""
        if self._at_present is None:
            around = self._logarithm + np.array([-APART, 0.0, APART])
            low, middle, high = (
                self._slope(place[:, None], np.exp(place)[:, None]) for place in around.T
            )
            bend, rise = (low - high) / (2 * APART), (2 * middle - low - high) / APART**2
            self._at_present = middle, bend, rise
        return self._at_present

    def add_all(self, counts: Floats, pulls: Floats) -> None:
        """Add the pulls of many decisions, ``[R, A]``, and find the constant."""
        self.counts += counts
        self.pulls += pulls
        self._search()
        self._until_search = FOLLOWED - 1
        self._at_present = None

    def fit(self) -> None:
        """Find the constant for the present counts."""
        self._at_present = None
        if self._until_search:
            self._until_search -= 1
            step = self._change / self._bend
            if np.maximum.reduce(np.abs(step), axis=None) < NEAR:
                self._move(step)
                return
        self._search()
        self._until_search = FOLLOWED - 1

    def _move(self, step: Floats) -> None:
        moved = self._logarithm + step
        self._logarithm = np.minimum(np.maximum(moved, -FURTHEST), FURTHEST)
        self.value = np.exp(self._logarithm)

    def _search(self) -> None:
        """Find the constant by Newton's method."""
        slope = self._slope(self._logarithm, self.value)
        self._bend = self._found_bend(slope)
        active: Booleans | None = None
        for _ in range(STEPS):
            step = slope / self._bend
            if active is not None:
                step *= active
            active = np.abs(step) >= CLOSE
            going_on = np.count_nonzero(active)
            if going_on:
                # A longer step would rely on a second derivative that no longer holds.
                step = np.minimum(np.maximum(step, -1.0), 1.0)
            self._move(step)
            if not going_on:
                break
            slope = self._slope(self._logarithm, self.value)
            # Replicas whose search has ended must not depend on the others.
            self._bend = np.where(active, self._found_bend(slope), self._bend)

    def _found_bend(self, slope: Floats) -> Floats:
        """Return the negative second derivative, given the slope, by a finite difference."""
        nearby = self._logarithm + NEARBY
        bend = (slope - self._slope(nearby, np.exp(nearby))) / NEARBY
        found: Floats = np.maximum(bend, FLATTEST)
        return found

    def _slope(self, logarithm: Floats, value: Floats) -> Floats:
        """Return the derivative of the log-posterior by the logarithm of the constant."""
        terms = np.add.reduce(scipy.special.digamma(self._rows + value), axis=2)
        total = (terms[0] - terms[1])[:, None]
        slope: Floats = value * total + (self.counts.shape[1] - logarithm / WIDTH**2)
        return slope


def _sums_before(terms: Floats) -> Floats:
    """Return the sum of the terms before each one, along the first axis."""
    sums = np.zeros(terms.shape)
    np.cumsum(terms[:-1], axis=0, out=sums[1:])
    return sums
