"""Levels and bin edges of a reward scale, given the observed rewards."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.running.stored import stored


@stored("reward-encoding")
class RewardEncoding(NamedTuple):
    """Two ways to encode a reward: as the nearest of a few levels, or between bin edges.

    ``levels [R, L]`` are the rewards that policies are conditioned on; counting estimators assign a
    reward to its nearest level. ``bin_edges [R, E]`` are the rewards between which networks
    interpolate. Both are sorted in every replica. If there are fewer distinct values than entries,
    the lowest value is repeated. `nearest` then returns its first index; `encoded` uses its last
    (the last but one if all bin edges are equal).
    """

    levels: Floats
    bin_edges: Floats

    @classmethod
    def fixed(cls, levels: tuple[float, ...], replicas: int) -> Self:
        """Return an encoding whose levels and bin edges are the same in every replica."""
        same = np.broadcast_to(np.array(levels, dtype=np.float64), (replicas, len(levels)))
        return cls(same, same)

    def nearest(self, reward: Floats) -> Integers:
        """Return the index of the nearest level, ``[R, n]``; of two equally near, the lower one."""
        lower, upper = self.levels[:, :-1], self.levels[:, 1:]
        if lower.shape[1] == 1:
            border = np.where(upper > lower, lower + (upper - lower) / 2, np.inf)
            return (reward > border).astype(np.int64)
        borders = np.where(upper > lower, lower + (upper - lower) / 2, np.inf)
        # Equal levels share the border above the last of them.
        borders = np.minimum.accumulate(borders[:, ::-1], axis=1)[:, ::-1]
        index = np.zeros(reward.shape, dtype=np.int64)
        for border in borders.T:
            index += reward > border[:, None]
        return index

    def encoded(self, reward: Floats) -> Floats:
        """Encode rewards for a network: ``[R, n] -> [R, n, E]``.

        If a reward lies between two bin edges, at the share t of the distance between them, then
        the entries of the two edges are 1 − t and t, and all others are 0. So the encoding is
        one-hot at a bin edge. A reward below the first or above the last edge counts as this edge.
        """
        replicas, rows = reward.shape
        reward = np.maximum(reward, self.bin_edges[:, :1])
        inner = self.bin_edges[:, 1:-1]
        before = (reward[..., None] >= inner[:, None]).sum(axis=-1)
        low = np.take_along_axis(self.bin_edges, before, axis=1)
        gap = np.take_along_axis(self.bin_edges, before + 1, axis=1) - low
        share = np.where(gap > 0, (reward - low) / np.where(gap > 0, gap, 1.0), 0.0)
        share = np.clip(share, 0.0, 1.0)
        encoded = np.zeros((replicas, rows, self.bin_edges.shape[1]))
        np.put_along_axis(encoded, before[..., None], 1 - share[..., None], axis=2)
        np.put_along_axis(encoded, before[..., None] + 1, share[..., None], axis=2)
        return encoded

    def where(self, chosen: Booleans, other: Self) -> Self:
        """Return this encoding in the replicas ``chosen [R]``, and the other in the rest."""
        return type(self)(
            np.where(chosen[:, None], self.levels, other.levels),
            np.where(chosen[:, None], self.bin_edges, other.bin_edges),
        )
