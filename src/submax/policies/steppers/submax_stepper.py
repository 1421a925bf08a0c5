"""SubMax with counted probabilities, one decision at a time."""

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.conditioning.marginalization import SUM_TOLERANCE
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper


class SubMaxStepper(Stepper):
    """π(a) = normalize(max(p₁(a) − p₀(a), 0)), with p₀ and p₁ the lowest and the highest level.

    The rows p of a replica are its smoothed counts, normalized. A decision changes one row of each
    replica, and only this row is computed again. The policy is uniform as long as one of the two
    levels was not observed.
    """

    def __init__(self, problem: Problem, replicas: int, smoothing: float) -> None:
        nothing = np.zeros((replicas, 0))
        self._encoding = problem.scale.reward_encoding(nothing, nothing)
        levels, self._actions = self._encoding.levels.shape[1], problem.space.size
        self._smoothing = smoothing
        self._counts = np.zeros((replicas * levels, self._actions))
        self._rows = np.full((replicas, levels, self._actions), 1 / self._actions)
        self._lowest, self._highest = self._rows[:, 0], self._rows[:, -1]
        self._observed = np.zeros((replicas, levels), dtype=bool)
        # Rewards above the middle of two levels are nearer to the upper one.
        self._middle = self._encoding.levels.mean(axis=1) if levels == 2 else None
        self._first: Integers = np.arange(replicas, dtype=np.int64) * levels
        self._all_observed = False
        self._even = np.cumsum(np.full(self._actions, 1 / self._actions))

    def act(self, rng: np.random.Generator) -> Integers:
        mass = self._highest - self._lowest
        # A difference that is positive only by a rounding error counts as zero.
        mass *= mass > self._highest * SUM_TOLERANCE
        cumulated = mass.cumsum(axis=-1)
        total = cumulated[:, -1:]
        if not self._all_observed or np.count_nonzero(total) < len(total):
            cumulated = np.where(self._uninformed(total), self._even, cumulated)
            total = cumulated[:, -1:]
        # The last index that has any mass ends at the total, which the product does not reach.
        uniform = rng.random((len(mass), 1)) * total
        index: Integers = np.add.reduce(cumulated <= uniform, axis=-1, dtype=np.int64)
        return index

    def _uninformed(self, total: Floats) -> Booleans:
        """Return which replicas decide uniformly, ``[R, 1]``."""
        empty: Booleans = total == 0
        return empty | ~(self._observed[:, :1] & self._observed[:, -1:])

    def learn(self, index: Integers, reward: Floats, rng: np.random.Generator) -> None:
        row = self._first + self._level(reward)
        self._counts[row, index] += 1.0
        smoothed = self._counts[row] + self._smoothing
        total = np.add.reduce(smoothed, axis=-1, keepdims=True)
        self._rows.reshape(-1, self._actions)[row] = smoothed * (1 / total)
        if not self._all_observed:
            self._observed.ravel()[row] = True
            self._all_observed = bool(self._observed[:, [0, -1]].all())

    def _level(self, reward: Floats) -> Integers | Booleans:
        """Return the index of the level that is nearest to each reward, ``[R]``."""
        if self._middle is not None:
            above: Booleans = reward > self._middle
            return above
        return self._encoding.nearest(reward[:, None])[:, 0]
