"""The threshold of the tracking strategy, followed from one decision to the next."""

from functools import lru_cache
from typing import NamedTuple, Self

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


class _Arms(NamedTuple):
    """Logit, value and observations of every arm, ``[N, A]``; best logit and κ, ``[N, 1]``."""

    logit: Floats
    value: Floats
    observations: Floats
    best: Floats
    kappa: Floats | float

    @classmethod
    def of(cls, odds: Floats, observations: Floats, kappa: Floats | float) -> Self:
        logit = np.log(odds)
        best = np.maximum.reduce(logit, axis=1, keepdims=True)
        return cls(logit, odds / (1 + odds), observations, best, kappa)

    def rows(self, places: Integers) -> Self:
        kappa = self.kappa if isinstance(self.kappa, float) else self.kappa[places]
        logit, value, observations, best = (part[places] for part in self[:-1])
        return type(self)(logit, value, observations, best, kappa)


class TrackedThreshold:
    """Finds the missing observations max(κ / kl(v, L) − s, 0) whose sum over arms is 1.

    v are the values and s the observations of the arms, see `Tracking`. L lies e^place above the
    best value, in logits. A step of the search replaces κ / kl by its tangent and then solves for
    the place exactly; the search starts from the place of the last decision.
    """

    def __init__(self, replicas: int) -> None:
        self.place = np.zeros((replicas, 1))

    def missing(self, odds: Floats, observations: Floats, kappa: float) -> Floats:
        """Return the missing observations, ``[R, A]``; ``odds`` are v / (1 − v)."""
        found, self.place = _searched(_Arms.of(odds, observations, kappa), self.place)
        return found

    def foreseen(
        self, odds: Floats, observations: Floats, kappa: Floats, replicas: Integers
    ) -> tuple[Floats, Floats]:
        """Return the missing observations before each of n decisions, and the last places.

        ``odds`` and ``observations`` are ``[n, W, A]`` for W ``replicas``, ``kappa`` is ``[n]``.
        The place of the last decision is searched first; those between are near the line from the
        present place to it.
        """
        decisions, width, count = odds.shape
        first = self.place[replicas]
        last = _searched(_Arms.of(odds[-1], observations[-1], float(kappa[-1])), first)[1]
        share = np.linspace(0.0, 1.0, decisions)[:, None, None]
        arms = _Arms.of(
            odds.reshape(-1, count),
            observations.reshape(-1, count),
            np.repeat(kappa, width)[:, None],
        )
        start = (first + (last - first) * share).reshape(-1, 1)
        return _searched_apart(arms, start).reshape(odds.shape), last


def _searched(arms: _Arms, place: Floats) -> tuple[Floats, Floats]:
    """Return missing observations and places; all rows take as many steps as the slowest."""
    for _ in range(STEPS):
        line = _tangent(arms, place)
        step = _solved(line)
        moving = _error(line, step) > TOTAL_TOLERANCE
        if not np.count_nonzero(moving):
            break
        place = _bounded(place + np.minimum(np.maximum(step, -WALK), WALK) * moving)
    return np.maximum(line.missing - line.fall * step, 0.0), _bounded(place + step)


def _searched_apart(arms: _Arms, place: Floats) -> Floats:
    """Return the missing observations of many rows, of which few take more than one step."""
    line = _tangent(arms, place)
    step = _solved(line)
    found: Floats = np.maximum(line.missing - line.fall * step, 0.0)
    moving = np.flatnonzero(_error(line, step) > TOTAL_TOLERANCE)
    if len(moving):
        walked = np.minimum(np.maximum(step[moving], -WALK), WALK)
        found[moving], _ = _searched(arms.rows(moving), _bounded(place[moving] + walked))
    return found


def _bounded(place: Floats) -> Floats:
    bounded: Floats = np.minimum(np.maximum(place, LOWEST), HIGHEST)
    return bounded


def _error(line: _Line, step: Floats) -> Floats:
    """Return twice the error that the tangent leaves in the sum, which should be 1, ``[N, 1]``."""
    error: Floats = step * step * np.add.reduce(line.fall, axis=1, keepdims=True)
    return error


def _solved(line: _Line) -> Floats:
    """Return the step after which the tangents' positive parts sum to 1, ``[N, 1]``.

    Σ max(m − f x, 0) = 1 at the largest of (Σ_S m − 1) / Σ_S f over all sets S of arms. The
    largest one is that of the arms with m / f above some limit.
    """
    order = np.argsort(line.missing / -line.fall, axis=1)
    order += _first_places(*order.shape)
    missing = line.missing.ravel().take(order).cumsum(axis=1)
    missing -= 1.0
    missing /= line.fall.ravel().take(order).cumsum(axis=1)
    step: Floats = np.maximum.reduce(missing, axis=1, keepdims=True)
    return step


@lru_cache(maxsize=8)
def _first_places(rows: int, arms: int) -> Integers:
    """Return where each row begins in a flattened array, ``[N, 1]``."""
    return np.arange(0, rows * arms, arms, dtype=np.int64)[:, None]


def _tangent(arms: _Arms, place: Floats) -> _Line:
    """Return κ / kl − s and its fall at a place."""
    logit, value, observations, best, kappa = arms
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
