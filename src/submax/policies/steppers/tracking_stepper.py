"""Tracking with fitted counts of two levels, one decision at a time."""

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.contracts.look_ahead_stepper import LookAheadStepper
from submax.core.contracts.problem import Problem
from submax.policies.steppers.fitted_constant import FittedConstant, ForeseenPulls
from submax.policies.steppers.foreseen_counts import ForeseenCounts
from submax.policies.steppers.tracked_threshold import TrackedThreshold
from submax.strategies.tracking import confidence

CONFIDENCES = 256
"""κ depends on the number of decisions alone; it is computed for this many of them at a time."""


class TrackingStepper(LookAheadStepper):
    """`Counting` with fitted smoothing and `Tracking`, for two reward levels and single decisions.

    The policy searches for the smoothing constant and for the threshold anew after every reward.
    Both move little from one decision to the next, so that a search from the last result takes one
    or two steps. It ends within the same tolerances, but not with the same bits. Decisions that are
    computed together start from the threshold and the constant before the first of them.
    """

    exact = False
    replay_cost = 4
    shortest = 32

    def __init__(self, problem: Problem, replicas: int, confidence_scale: float) -> None:
        super().__init__(replicas)
        nothing = np.zeros((replicas, 0))
        levels = problem.scale.reward_encoding(nothing, nothing).levels
        # Rewards above the middle of the two levels are nearer to the upper one.
        self._middle = levels.mean(axis=1)
        self._scale, arms = confidence_scale, problem.space.size
        self._first: Integers = np.arange(replicas, dtype=np.int64) * arms
        self._wins, self._rates = np.zeros((replicas, arms)), np.zeros((replicas, arms))
        # The constant is that of the lower level; if not, the upper level is the more frequent one.
        self._lower: Booleans = np.ones((replicas, 1), dtype=bool)
        self._constant = FittedConstant(replicas, arms)
        self._threshold = TrackedThreshold(replicas)
        self._foreseen_places = np.zeros((replicas, 1))
        self._kappas, self._kappas_from = np.zeros(0), 0
        self._received = 0
        self._informed = False

    @property
    def settled(self) -> bool:
        return self._informed

    def decide(self, uniform: Floats) -> Integers:
        return _drawn(self.mass(), uniform)

    def learn(self, index: Integers, reward: Floats, rng: np.random.Generator) -> None:
        place = self._first + index
        upper = reward > self._middle
        wins, rates = self._wins.reshape(-1), self._rates.reshape(-1)
        wins[place] += upper
        counted = (upper != self._lower[:, 0]).astype(np.float64)
        self._constant.add(place, counted)
        rates[place] = wins[place] / (self._constant.pulls.reshape(-1)[place] - 1.0)
        self._received += 1
        self._choose_level()
        self._constant.fit()

    def mass(self) -> Floats:
        """Return the probability of every arm, up to a factor, ``[R, A]``."""
        constant = self._constant
        fitted = constant.counts + constant.value
        observations = constant.pulls + constant.value
        odds = _odds(fitted, observations, self._lower)
        missing = self._threshold.missing(odds, observations, float(self._kappa(1)[0]))
        if self._informed:
            return missing
        # If only one level was observed, nothing distinguishes the actions.
        won, pulled = self._wins.sum(axis=1), (self._constant.pulls - 1.0).sum(axis=1)
        seen = (won > 0) & (won < pulled)
        self._informed = bool(seen.all())
        return np.where(seen[:, None], missing, 1.0)

    def replay(
        self, index: Integers, reward: Floats, uniform: Floats, replicas: Integers
    ) -> Integers | None:
        lower, upper = self._lower[replicas], reward > self._middle[replicas]
        pulls = self._constant.pulls[replicas] - 1.0
        before = ForeseenCounts.of(self._wins[replicas], pulls, index, upper)
        counts = np.where(lower, before.pulls - before.wins, before.wins)
        place = index[..., None]
        taken = ForeseenPulls(
            (upper != lower[:, 0]).astype(np.float64),
            np.take_along_axis(counts, place, 2)[..., 0],
            np.take_along_axis(before.pulls, place, 2)[..., 0] + 1.0,
        )
        constants = self._constant.foreseen(taken, replicas)
        if constants is None or (before.lower_is_frequent() != lower[:, 0]).any():
            return None
        observations = before.pulls + (1.0 + constants[..., None])
        odds = _odds(counts + constants[..., None], observations, lower)
        kappa = self._kappa(len(index))
        missing, last = self._threshold.foreseen(odds, observations, kappa, replicas)
        self._foreseen_places[replicas] = last
        return _drawn(missing, uniform)

    def learn_all(self, index: Integers, reward: Floats) -> None:
        shape, place = self._wins.shape, (self._first + index).ravel()
        upper = (reward > self._middle).ravel()
        pulls = np.bincount(place, minlength=self._wins.size).reshape(shape).astype(np.float64)
        wins = np.bincount(place, upper, minlength=self._wins.size).reshape(shape)
        self._wins += wins
        self._received += len(index)
        self._threshold.place = self._foreseen_places.copy()
        self._constant.add_all(np.where(self._lower, pulls - wins, wins), pulls)
        self._rates = self._wins / np.maximum(self._constant.pulls - 1.0, 1.0)
        self._choose_level()

    def _choose_level(self) -> None:
        """The level that is rarer, on average over the arms that were pulled, has constant 1."""
        upper = np.add.reduce(self._rates, axis=1, keepdims=True)
        tried = np.add.reduce(self._constant.pulls > 1.0, axis=1, keepdims=True)
        lower = upper <= tried - upper
        changed = lower != self._lower
        if np.count_nonzero(changed):
            losses = self._constant.pulls - 1.0 - self._wins
            self._constant.restart(changed[:, 0], np.where(lower, losses, self._wins))
            self._lower = lower

    def _kappa(self, count: int) -> Floats:
        """Return κ of the next decisions, ``[count]``."""
        place = self._received - self._kappas_from
        if place + count > len(self._kappas):
            self._kappas_from, place = self._received, 0
            observations = self._received + np.arange(max(count, CONFIDENCES), dtype=np.float64)
            self._kappas = self._scale * confidence(observations, np.array(1.0))
        return self._kappas[place : place + count]


def _odds(fitted: Floats, observations: Floats, lower: Booleans) -> Floats:
    """Return the odds of the upper level; ``lower`` says whether the lower one has the constant."""
    other = observations - fitted
    if np.count_nonzero(lower) == lower.size:
        return other / fitted
    odds: Floats = np.where(lower, other, fitted) / np.where(lower, fitted, other)
    return odds


def _drawn(mass: Floats, uniform: Floats) -> Integers:
    """Return decisions ``[n, W]`` for uniform numbers, by masses ``[(n,) W, A]``."""
    cumulated = mass.cumsum(axis=-1)
    drawn: Integers = (cumulated <= uniform[..., None] * cumulated[..., -1:]).argmin(axis=-1)
    return drawn
