"""A reward scale laid against what was observed."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.running.stored import stored


@stored("ruler")
class Ruler(NamedTuple):
    """``levels [R, L]`` are the rewards conditioned on, ``knots [R, E]`` those of the embedding.

    Both rise in every replica. Where there are fewer different ones than places, the lowest stands
    several times, and the first of them counts.
    """

    levels: Floats
    knots: Floats

    @classmethod
    def fixed(cls, levels: tuple[float, ...], replicas: int) -> Self:
        """The same levels in every replica, whatever is observed."""
        same = np.broadcast_to(np.array(levels, dtype=np.float64), (replicas, len(levels)))
        return cls(same, same)

    def nearest(self, reward: Floats) -> Integers:
        """The position of the nearest level, ``[R, n]``; halfway, that of the lower one."""
        lower, upper = self.levels[:, :-1], self.levels[:, 1:]
        if lower.shape[1] == 1:
            border = np.where(upper > lower, lower + (upper - lower) / 2, np.inf)
            return (reward > border).astype(np.int64)
        borders = np.where(upper > lower, lower + (upper - lower) / 2, np.inf)
        # Beyond the first of several equal levels is beyond all of them.
        borders = np.minimum.accumulate(borders[:, ::-1], axis=1)[:, ::-1]
        index = np.zeros(reward.shape, dtype=np.int64)
        for border in borders.T:
            index += reward > border[:, None]
        return index

    def embedded(self, reward: Floats) -> Floats:
        """A reward as its place between the two knots around it: ``[R, n] -> [R, n, E]``.

        All entries are zero but those of the two knots, which are 1 − t and t, with t the share of
        the way from one to the other; so a reward at a knot is one-hot. Beyond the first and
        the last knot a reward counts as that knot.
        """
        replicas, rows = reward.shape
        reward = np.maximum(reward, self.knots[:, :1])
        inner = self.knots[:, 1:-1]
        before = (reward[..., None] >= inner[:, None]).sum(axis=-1)
        low = np.take_along_axis(self.knots, before, axis=1)
        gap = np.take_along_axis(self.knots, before + 1, axis=1) - low
        share = np.where(gap > 0, (reward - low) / np.where(gap > 0, gap, 1.0), 0.0)
        share = np.clip(share, 0.0, 1.0)
        embedded = np.zeros((replicas, rows, self.knots.shape[1]))
        np.put_along_axis(embedded, before[..., None], 1 - share[..., None], axis=2)
        np.put_along_axis(embedded, before[..., None] + 1, share[..., None], axis=2)
        return embedded

    def where(self, chosen: Booleans, other: Self) -> Self:
        """Put two together: this one in the replicas ``chosen [R]``, else the other."""
        return type(self)(
            np.where(chosen[:, None], self.levels, other.levels),
            np.where(chosen[:, None], self.knots, other.knots),
        )
