"""The fitted smoothing constant of two levels, followed from one decision to the next."""

import numpy as np
from scipy.special import digamma

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

    def restart(self, replicas: Booleans, counts: Floats) -> None:
        """Begin again in some replicas, because another level has become the rarest."""
        self._logarithm[replicas] = 0.0
        self.value[replicas] = 1.0
        self.counts[replicas] = counts[replicas]
        self._until_search = 0

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

    def fit(self) -> None:
        """Find the constant for the present counts."""
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
        found: Floats = np.maximum(bend, 1e-3)
        return found

    def _slope(self, logarithm: Floats, value: Floats) -> Floats:
        """Return the derivative of the log-posterior by the logarithm of the constant."""
        terms = np.add.reduce(digamma(self._rows + value), axis=2)
        total = (terms[0] - terms[1])[:, None]
        slope: Floats = value * total + (self.counts.shape[1] - logarithm / WIDTH**2)
        return slope
