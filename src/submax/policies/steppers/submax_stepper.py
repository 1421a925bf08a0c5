"""SubMax with counted probabilities, one decision at a time."""

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.conditioning import SUM_TOLERANCE
from submax.core.policy import LookAheadStepper
from submax.core.problem import Problem


class SubMaxStepper(LookAheadStepper):
    """π(a) = normalize(max(p₁(a) − p₀(a), 0)), with p₀ and p₁ the lowest and the highest level.

    The rows p of a replica are its smoothed counts, normalized. A single decision changes one row
    of each replica, and only this row is computed again. The policy is uniform as long as one of
    the two levels was not observed.
    """

    def __init__(self, problem: Problem, replicas: int, smoothing: float) -> None:
        super().__init__(replicas)
        nothing = np.zeros((replicas, 0))
        self._encoding = problem.scale.reward_encoding(nothing, nothing)
        levels, self._actions = self._encoding.levels.shape[1], problem.space.size
        self._smoothing = smoothing
        self._counts = np.zeros((replicas, levels, self._actions))
        self._rows = np.full((replicas, levels, self._actions), 1 / self._actions)
        self._observed = np.zeros((replicas, levels), dtype=bool)
        # Rewards above the middle of two levels are nearer to the upper one.
        self._middle = self._encoding.levels.mean(axis=1)
        self._two_levels = levels == 2
        self._first: Integers = np.arange(replicas, dtype=np.int64) * levels
        self._all_observed = False
        self._even = np.cumsum(np.full(self._actions, 1 / self._actions))

    @property
    def settled(self) -> bool:
        return self._all_observed and self._two_levels

    def decide(self, uniform: Floats) -> Integers:
        return self._drawn(self._rows, uniform, self._observed)

    def _drawn(self, rows: Floats, uniform: Floats, observed: Booleans) -> Integers:
        """Return decisions ``[n, W]`` by rows of probabilities ``[(n,) W, L, M]``."""
        lowest, highest = rows[..., 0, :], rows[..., -1, :]
        mass = highest - lowest
        # A difference that is positive only by a rounding error counts as zero.
        mass *= mass > highest * SUM_TOLERANCE
        cumulated = mass.cumsum(axis=-1)
        total = cumulated[..., -1:]
        if not self._all_observed or np.count_nonzero(total) < total.size:
            uninformed = (total == 0) | ~(observed[:, :1] & observed[:, -1:])
            cumulated = np.where(uninformed, self._even, cumulated)
            total = cumulated[..., -1:]
        # The last index that has any mass ends at the total, which the product does not reach.
        index: Integers = (cumulated <= uniform[..., None] * total).argmin(axis=-1)
        return index

    def learn(self, index: Integers, reward: Floats, rng: np.random.Generator) -> None:
        row = self._first + self._level(reward)
        counts = self._counts.reshape(-1, self._actions)
        counts[row, index] += 1.0
        self._rows.reshape(-1, self._actions)[row] = self._normalized(counts[row])
        if not self._all_observed:
            self._observed.ravel()[row] = True
            self._all_observed = bool(self._observed[:, [0, -1]].all())

    def _normalized(self, counts: Floats) -> Floats:
        smoothed = counts + self._smoothing
        total = np.add.reduce(smoothed, axis=-1, keepdims=True)
        np.divide(1.0, total, out=total)
        smoothed *= total
        return smoothed

    def _level(self, reward: Floats) -> Integers | Booleans:
        """Return the index of the level that is nearest to each reward, ``[R]``."""
        if self._two_levels:
            above: Booleans = reward > self._middle
            return above
        return self._encoding.nearest(reward[:, None])[:, 0]

    def replay(
        self, index: Integers, reward: Floats, uniform: Floats, replicas: Integers
    ) -> Integers:
        decisions, width = len(index), self._counts[0].size
        counts = np.zeros((decisions, len(replicas), width))
        counts[0] = self._counts[replicas].reshape(-1, width)
        place = (reward > self._middle[replicas]) * self._actions + index
        place += np.arange(0, counts.size, width).reshape(index.shape)
        # A decision counts from the next one on.
        counts.reshape(-1)[place[:-1] + len(replicas) * width] += 1.0
        before = np.cumsum(counts, axis=0, out=counts).reshape(*index.shape, -1, self._actions)
        return self._drawn(self._normalized(before), uniform, self._observed[replicas])

    def learn_all(self, index: Integers, reward: Floats) -> None:
        row = self._first + (reward > self._middle)
        place = row * self._actions + index
        added = np.bincount(place.ravel(), minlength=self._counts.size)
        self._counts += added.reshape(self._counts.shape)
        self._rows = self._normalized(self._counts)
