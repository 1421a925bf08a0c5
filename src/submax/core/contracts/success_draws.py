"""The rewards 0 and 1 of decisions that are not taken yet."""

import numpy as np

from submax.core.arrays import Floats, Integers


class SuccessDraws:
    """One uniform number for each decision; the reward is 1 if it is below the arm's probability.

    ``successes [R, M]`` are the success probabilities of all joint actions, and ``uniform [n, R]``
    are the numbers of the next n decisions. ``table`` is ``successes`` in one row, in which
    ``first [R]`` are the places of the first actions. What an arm would pay is known before it is
    chosen, so that a stepper can look ahead.
    """

    def __init__(self, successes: Floats, uniform: Floats) -> None:
        replicas, actions = successes.shape
        self.uniform = uniform
        self.table = successes.ravel()
        self.first: Integers = np.arange(0, replicas * actions, actions)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of decisions and of replicas."""
        decisions, replicas = self.uniform.shape
        return decisions, replicas

    def means(self, index: Integers) -> Floats:
        """Return the success probabilities of the actions ``index [..., R]``."""
        return self.table.take(self.first + index, mode="clip")

    def single(self, uniform: Floats, index: Integers, out: Floats) -> None:
        """Write the rewards of one decision of each replica to ``out [R]``."""
        np.less(uniform, self.table.take(self.first + index, mode="clip"), out=out)

    def several(self, begin: int, index: Integers, replicas: Integers) -> Floats:
        """Return the rewards of decisions ``index [n, W]`` from ``begin`` on, in W replicas."""
        uniform = self.uniform[begin : begin + len(index), replicas]
        chances = self.table.take(self.first[replicas] + index, mode="clip")
        return (uniform < chances).astype(np.float64)
