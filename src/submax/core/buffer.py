"""All feedback so far, kept for estimators that learn from it again and again."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.feedback import Feedback
from submax.core.problem import Problem


class Buffer(NamedTuple):
    """The rows that are there, first come first, ``filled [R]`` of them in each replica.

    Arrays are ``[R, capacity, ...]``; what lies beyond a replica's rows is zero, weight included.
    ``log_prob`` is NaN where the logging policy did not say.
    """

    context: NDArray[np.float32]
    action: NDArray[np.int32]
    reward: Floats
    level: NDArray[np.int32]
    log_prob: Floats
    weight: Floats
    filled: Integers

    @classmethod
    def empty(cls, problem: Problem, replicas: int) -> Self:
        """No rows."""
        shape = (replicas, 0)
        return cls(
            np.zeros((*shape, problem.context_width), dtype=np.float32),
            np.zeros((*shape, problem.space.slots), dtype=np.int32),
            np.zeros(shape),
            np.zeros(shape, dtype=np.int32),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(replicas, dtype=np.int64),
        )

    def add(self, feedback: Feedback, problem: Problem) -> Self:
        """The same with the new rows behind the old; rows of weight 0 are left out."""
        there = feedback.weight > 0
        replica, row = np.nonzero(there)
        place = self.filled[replica] + (np.cumsum(there, axis=1) - 1)[replica, row]
        filled = self.filled + there.sum(axis=1)
        missing = np.full(feedback.reward.shape, np.nan)
        log_prob = missing if feedback.log_prob is None else feedback.log_prob
        reward = np.where(there, feedback.reward, 0.0)
        level = problem.level_index(reward)
        new = (feedback.context, feedback.action, reward, level, log_prob, feedback.weight)
        capacity = int(filled.max(initial=0))
        joined: list[Any] = [
            _joined(old, values[replica, row], (replica, place), capacity)
            for old, values in zip(list[Any](self[:-1]), new, strict=True)
        ]
        context, action, reward, level, log_prob, weight = joined
        return type(self)(context, action, reward, level, log_prob, weight, filled)

    def level_share(self, levels: int) -> Floats:
        """How often each level occurs, ``[R, levels]``; equal shares before the first row."""
        mass = np.stack(
            [(self.weight * (self.level == level)).sum(axis=1) for level in range(levels)], axis=1
        )
        total = mass.sum(axis=1, keepdims=True)
        share: Floats = np.where(total > 0, mass / np.where(total > 0, total, 1.0), 1 / levels)
        return share


def _joined(old: NDArray, new: NDArray, place: tuple[Integers, Integers], capacity: int) -> NDArray:  # type: ignore[type-arg]  # any dtype, the same in and out
    joined = np.zeros((old.shape[0], capacity, *old.shape[2:]), dtype=old.dtype)
    joined[:, : old.shape[1]] = old
    joined[place] = new
    return joined
