"""The fitted smoothing constant of two levels, followed from one decision to the next."""

import numpy as np
from scipy.special import digamma

from submax.core.arrays import Booleans, Floats, Integers
from submax.estimators.fitted_smoothing import CLOSE, FURTHEST, NEARBY, WIDTH

STEPS = 60
"""Largest number of Newton steps for one decision."""
SAME_BEND = 16
"""The second derivative is computed again after this many decisions; in between it hardly changes,
and it only decides how fast the search is."""


class FittedConstant:
    """The constant c of ``fitted_smoothing`` for two levels, of which the other one has constant 1.

    With n the counts of the level and p the pulls of each of A arms, c is where the derivative of
    the log-posterior by ln c is zero: c (Σ ψ(n + c) − Σ ψ(p + c + 1)) + A − ln(c) / 9. Each search
    starts from the last constant. ``value [R, 1]`` is c, ``counts [R, A]`` is n and ``pulls [R, A]``
    is p + 1.
    """

    def __init__(self, replicas: int, arms: int) -> None:
        self.value = np.ones((replicas, 1))
        self._rows = np.zeros((2, replicas, arms))
        self.counts, self.pulls = self._rows
        self.pulls += 1.0
        self._logarithm = np.zeros((replicas, 1))
        self._bend = np.ones((replicas, 1))
        self._decisions = 0

    def restart(self, replicas: Booleans, counts: Floats) -> None:
        """Begin again in some replicas, because another level has become the rarest."""
        self._logarithm[replicas] = 0.0
        self.value[replicas] = 1.0
        self.counts[replicas] = counts[replicas]

    def add(self, place: Integers, counted: Floats) -> None:
        """Add a pull of one arm in each replica; ``counted`` is 1 if it had the level, else 0."""
        counts, pulls = self.counts.reshape(-1), self.pulls.reshape(-1)
        counts[place] += counted
        pulls[place] += 1.0

    def fit(self) -> None:
        """Find the constant for the present counts."""
        slope = self._slope(self._logarithm, self.value)
        if self._decisions % SAME_BEND == 0:
            self._bend = self._found_bend(slope)
        self._decisions += 1
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
            moved = self._logarithm + step
            self._logarithm = np.minimum(np.maximum(moved, -FURTHEST), FURTHEST)
            self.value = np.exp(self._logarithm)
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
