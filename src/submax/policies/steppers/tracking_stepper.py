"""Tracking with fitted counts of two levels, one decision at a time."""

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.policies.steppers.fitted_constant import FittedConstant
from submax.policies.steppers.tracked_threshold import TrackedThreshold
from submax.strategies.tracking import confidence

CONFIDENCES = 256
"""κ depends on the number of decisions alone; it is computed for this many of them at a time."""


class TrackingStepper(Stepper):
    """`Counting` with fitted smoothing and `Tracking`, for two reward levels and single decisions.

    The policy searches for the smoothing constant and for the threshold anew after every reward.
    Both move little from one decision to the next, so that a search from the last result takes one
    or two steps. It ends within the same tolerances, but not with the same bits.
    """

    exact = False

    def __init__(self, problem: Problem, replicas: int, confidence_scale: float) -> None:
        nothing = np.zeros((replicas, 0))
        levels = problem.scale.reward_encoding(nothing, nothing).levels
        # Rewards above the middle of the two levels are nearer to the upper one.
        self._middle = levels.mean(axis=1)
        self._scale, arms = confidence_scale, problem.space.size
        self._first: Integers = np.arange(replicas, dtype=np.int64) * arms
        self._wins, self._rates = np.zeros((replicas, arms)), np.zeros((replicas, arms))
        # The constant is that of the lower level; if not, the upper level is the more frequent one.
        self._lower: Booleans = np.ones((replicas, 1), dtype=bool)
        self._all_lower = True
        self._constant = FittedConstant(replicas, arms)
        self._threshold = TrackedThreshold(replicas, arms)
        self._kappas: list[float] = []
        self._received = 0
        self._informed = False

    def act(self, rng: np.random.Generator) -> Integers:
        cumulated = self.mass().cumsum(axis=1)
        uniform = rng.random((len(cumulated), 1)) * cumulated[:, -1:]
        index: Integers = np.add.reduce(cumulated <= uniform, axis=1, dtype=np.int64)
        return index

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
        other = observations - fitted
        lower, upper = fitted, other
        if not self._all_lower:
            lower, upper = np.where(self._lower, lower, upper), np.where(self._lower, upper, lower)
        missing = self._threshold.missing(upper / lower, observations, self._kappa())
        if self._informed:
            return missing
        # If only one level was observed, nothing distinguishes the actions.
        won, pulled = self._wins.sum(axis=1), (self._constant.pulls - 1.0).sum(axis=1)
        seen = (won > 0) & (won < pulled)
        self._informed = bool(seen.all())
        return np.where(seen[:, None], missing, 1.0)

    def _choose_level(self) -> None:
        """The level that is rarer, on average over the arms that were pulled, has constant 1."""
        upper = np.add.reduce(self._rates, axis=1, keepdims=True)
        tried = np.add.reduce(self._constant.pulls > 1.0, axis=1, keepdims=True)
        lower = upper <= tried - upper
        changed = lower != self._lower
        if np.count_nonzero(changed):
            losses = self._constant.pulls - 1.0 - self._wins
            self._constant.restart(changed[:, 0], np.where(lower, losses, self._wins))
            self._lower, self._all_lower = lower, bool(lower.all())

    def _kappa(self) -> float:
        place = self._received % CONFIDENCES
        if place == 0:
            observations = self._received + np.arange(CONFIDENCES, dtype=np.float64)
            self._kappas = (self._scale * confidence(observations, np.array(1.0))).tolist()
        return self._kappas[place]
