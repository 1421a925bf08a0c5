"""The threshold of the tracking strategy, followed from one decision to the next."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.strategies.tracking import HIGHEST, LOWEST, TINY, TOTAL_TOLERANCE

STEPS = 60
"""Largest number of steps of the search for one decision."""
WALK = 1.0
"""Longest step of the search, in the logarithm of the threshold's height."""


class _Line(NamedTuple):
    """Missing observations near a place: ``missing − fall · step``, both ``[R, A]``."""

    missing: Floats
    fall: Floats


class TrackedThreshold:
    """Finds the missing observations max(κ / kl(v, L) − s, 0) whose sum over arms is 1.

    v are the values and s the observations of the arms, see `Tracking`. L lies e^place above the
    best value, in logits. A step of the search replaces κ / kl by its tangent and then solves for
    the place exactly; the search starts from the place of the last decision.
    """

    def __init__(self, replicas: int, arms: int) -> None:
        self._place = np.zeros((replicas, 1))
        self._first: Integers = np.arange(0, replicas * arms, arms, dtype=np.int64)[:, None]

    def missing(self, odds: Floats, observations: Floats, kappa: float) -> Floats:
        """Return the missing observations, ``[R, A]``; ``odds`` are v / (1 − v)."""
        logit = np.log(odds)
        value = odds / (1 + odds)
        best = np.maximum.reduce(logit, axis=1, keepdims=True)
        place = self._place
        for _ in range(STEPS):
            line = _tangent(logit, value, observations, kappa, best, place)
            step = self._solved(line)
            # Twice the error that the tangent leaves in the sum, which should be 1.
            settled = step * step * np.add.reduce(line.fall, axis=1, keepdims=True)
            moving = settled > TOTAL_TOLERANCE
            if not np.count_nonzero(moving):
                break
            moved = place + np.minimum(np.maximum(step, -WALK), WALK) * moving
            place = np.minimum(np.maximum(moved, LOWEST), HIGHEST)
        self._place = np.minimum(np.maximum(place + step, LOWEST), HIGHEST)
        found: Floats = np.maximum(line.missing - line.fall * step, 0.0)
        return found

    def _solved(self, line: _Line) -> Floats:
        """Return the step after which the tangents' positive parts sum to 1, ``[R, 1]``.

        Σ max(m − f x, 0) = 1 at the largest of (Σ_S m − 1) / Σ_S f over all sets S of arms. The
        largest one is that of the arms with m / f above some limit.
        """
        order = np.argsort(line.missing / -line.fall, axis=1)
        order += self._first
        missing = line.missing.ravel().take(order).cumsum(axis=1)
        missing -= 1.0
        missing /= line.fall.ravel().take(order).cumsum(axis=1)
        step: Floats = np.maximum.reduce(missing, axis=1, keepdims=True)
        return step


def _tangent(
    logit: Floats, value: Floats, observations: Floats, kappa: float, best: Floats, place: Floats
) -> _Line:
    """Return κ / kl − s and its fall at a place."""
    above = np.exp(place)
    threshold = best + above
    height = threshold - logit
    divergence = np.expm1(height)
    divergence *= value
    np.log1p(divergence, out=divergence)
    height *= value
    divergence -= height
    np.maximum(divergence, TINY, out=divergence)
    target = kappa / divergence
    fall = 1 / (1 + np.exp(-threshold)) - value
    fall *= above
    fall *= target
    fall /= divergence
    target -= observations
    np.maximum(fall, TINY, out=fall)
    return _Line(target, fall)
