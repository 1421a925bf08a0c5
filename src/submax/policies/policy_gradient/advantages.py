"""Standardized rewards of logged decisions, from which policy networks learn."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.memory.buffer import Buffer
from submax.core.rewards.scale import Scale
from submax.core.spaces.real_space import RealSpace
from submax.core.spaces.space import Space
from submax.policies.neural.value_belief import reward_shares


class Advantages(NamedTuple):
    """Rewards on the scale from 0 to 1, ``[R, n]``, with their ``mean`` and ``deviation [R, 1]``.

    The mean is the baseline of Williams (1992). Dividing by the deviation changes no policy, but
    gives the weight of a regularization the same meaning for frequent and rare rewards. It is 1 if
    all rewards are equal.
    """

    reward: Floats
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, scale: Scale, buffer: Buffer) -> Self:
        """Return the standardized rewards of a buffer."""
        reward = reward_shares(scale, buffer, buffer.reward)
        total = np.maximum(buffer.weight.sum(axis=1, keepdims=True), 1e-300)
        mean = (buffer.weight * reward).sum(axis=1, keepdims=True) / total
        square = (buffer.weight * (reward - mean) ** 2).sum(axis=1, keepdims=True) / total
        return cls(reward, mean, np.where(square > 1e-12, np.sqrt(square), 1.0))

    def above_mean(self, value: Floats) -> Floats:
        """Return (value − mean) / deviation of values ``[R, n]`` or ``[R, n, M]``."""
        shape = (-1, *[1] * (value.ndim - 1))
        above: Floats = (value - self.mean.reshape(shape)) / self.deviation.reshape(shape)
        return above

    def above(self, baseline: Floats) -> Floats:
        """Return (reward − baseline) / deviation, with ``baseline [R, n]``."""
        above: Floats = (self.reward - baseline) / self.deviation
        return above


def weighted_advantages(scale: Scale, space: Space, buffer: Buffer) -> Floats:
    """Return (r − b) / s and log q of every row, with b the mean reward: ``[R, rows, 2]``.

    q is the probability of the logged action, or its density if real-valued parts are scaled to the
    range from 0 to 1, as in networks.
    """
    advantages = Advantages.of(scale, buffer)
    volume = space.log_volume if isinstance(space, RealSpace) else 0.0
    return np.stack([advantages.above(advantages.mean), buffer.log_prob + volume], axis=-1)
