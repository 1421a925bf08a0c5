"""Stored feedback, for estimators that are fitted again to all of it."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.memory import NEGLIGIBLE, Memory
from submax.core.rewards.reward_encoding import RewardEncoding
from submax.core.running.stored import stored


@stored("buffer")
class Buffer(NamedTuple):
    """The stored rows of each replica in order of arrival, ``filled [R]`` of them.

    Arrays are ``[R, capacity, ...]``; behind the rows of a replica all values are zero, the weight
    included. ``context`` has the precision of the added contexts, float32 or float64, and the
    higher one if both occur. ``log_prob`` is NaN if it was not logged. ``priority`` is a uniform
    random number per row; a reservoir keeps the rows with the highest priorities.
    """

    context: NDArray[np.floating[Any]]
    action: NDArray[Any]
    reward: Floats
    log_prob: Floats
    weight: Floats
    priority: NDArray[np.float32]
    filled: Integers

    @classmethod
    def empty(cls, problem: Problem, replicas: int) -> Self:
        """Return a buffer without rows."""
        shape = (replicas, 0)
        return cls(
            np.zeros((*shape, problem.context_width), dtype=np.float32),
            np.zeros((*shape, problem.space.slots), dtype=_action_dtype(problem)),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape, dtype=np.float32),
            np.zeros(replicas, dtype=np.int64),
        )

    def add(self, feedback: Feedback, memory: Memory, rng: np.random.Generator) -> Self:
        """Return the old rows that the memory keeps, followed by new rows of positive weight."""
        there = feedback.weight > 0
        new = there.sum(axis=1)
        old, weight, priority = self, feedback.weight, None
        if memory.reservoir is not None:
            priority = _priorities(there, rng)
            # A replica without new rows keeps all of its rows.
            old = old._selected(_highest(old, memory.reservoir) | (new == 0)[:, None])
        if memory.discount < 1:
            later = np.maximum(new[:, None] - np.cumsum(there, axis=1), 0)
            factor = memory.discount**later
            weight, there = weight * factor, there & (factor > NEGLIGIBLE)
            old = old._discounted(memory.discount**new)
        joined = old._joined(feedback, there, weight, priority)
        if memory.window is not None:
            place = np.arange(joined.reward.shape[1])
            joined = joined._selected(place >= (joined.filled - memory.window)[:, None])
        return joined

    def level_share(self, encoding: RewardEncoding) -> Floats:
        """Return the share of the weight at each level, ``[R, L]``; equal shares without rows."""
        levels = encoding.levels.shape[1]
        index = encoding.nearest(self.reward)
        mass = np.stack(
            [(self.weight * (index == level)).sum(axis=1) for level in range(levels)], axis=1
        )
        total = mass.sum(axis=1, keepdims=True)
        share: Floats = np.where(total > 0, mass / np.where(total > 0, total, 1.0), 1 / levels)
        return share

    def for_deciding(self) -> Self:
        """Return the buffer without its rows, which only further learning needs."""
        none = {name: array[:, :0] for name, array in self._asdict().items() if name != "filled"}
        return self._replace(**none)

    def _discounted(self, factor: Floats) -> Self:
        """Multiply all weights by ``factor [R]``, and drop rows whose weight becomes negligible."""
        discounted = self._replace(weight=self.weight * factor[:, None])
        heaviest = discounted.weight.max(axis=1, keepdims=True, initial=0)
        return discounted._selected(
            (discounted.weight > NEGLIGIBLE * heaviest) | (factor == 1)[:, None]
        )

    def _joined(
        self,
        feedback: Feedback,
        there: Booleans,
        weight: Floats,
        priority: NDArray[np.float32] | None,
    ) -> Self:
        replica, row = np.nonzero(there)
        place = self.filled[replica] + (np.cumsum(there, axis=1) - 1)[replica, row]
        filled = self.filled + there.sum(axis=1)
        nothing = np.zeros(there.shape)
        log_prob = nothing + np.nan if feedback.log_prob is None else feedback.log_prob
        new = (
            feedback.context,
            feedback.action,
            feedback.reward,
            log_prob,
            weight,
            nothing if priority is None else priority,
        )
        capacity = int(filled.max(initial=0))
        precision = np.result_type(self.context, feedback.context)
        before = self._replace(context=self.context.astype(precision, copy=False))
        joined: list[Any] = [
            _appended(old, values[replica, row], (replica, place), capacity)
            for old, values in zip(list[Any](before[:-1]), new, strict=True)
        ]
        context, action, reward, log_prob, weight, priority = joined
        return type(self)(context, action, reward, log_prob, weight, priority, filled)

    def _selected(self, keep: Booleans) -> Self:
        """Return the rows marked in ``keep [R, capacity]``, in their order."""
        keep = keep & (np.arange(keep.shape[1]) < self.filled[:, None])
        filled = keep.sum(axis=1)
        if np.array_equal(filled, self.filled):
            return self
        order = np.argsort(~keep, axis=1, kind="stable")[:, : filled.max(initial=0)]
        replica = np.arange(len(order))[:, None]
        beyond = np.arange(order.shape[1]) >= filled[:, None]
        chosen: list[Any] = [column[replica, order] for column in self[:-1]]
        for column in chosen:
            column[beyond] = 0
        context, action, reward, log_prob, weight, priority = chosen
        return type(self)(context, action, reward, log_prob, weight, priority, filled)


def _action_dtype(problem: Problem) -> type[np.int32] | type[np.float64]:
    return np.float64 if problem.space.reals else np.int32


def _priorities(there: Booleans, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw a number for every row, ``[R, n]``; absent rows do not use up random numbers."""
    most = np.count_nonzero(there, axis=1).max(initial=1)
    drawn = rng.random((most, len(there)), np.float32).T
    place = np.maximum(np.cumsum(there, axis=1) - 1, 0)
    return np.take_along_axis(drawn, place, axis=1)


def _highest(buffer: Buffer, count: int) -> Booleans:
    """Mark the ``count`` rows of each replica with the highest priorities: ``[R, capacity]``."""
    beyond = np.arange(buffer.priority.shape[1]) >= buffer.filled[:, None]
    rank = np.argsort(np.argsort(np.where(beyond, 1.0, -buffer.priority), axis=1), axis=1)
    chosen: Booleans = rank < count
    return chosen


def _appended(
    old: NDArray[Any], new: NDArray[Any], index: tuple[Integers, Integers], capacity: int
) -> NDArray[Any]:
    joined = np.zeros((old.shape[0], capacity, *old.shape[2:]), dtype=old.dtype)
    joined[:, : old.shape[1]] = old
    joined[index] = new
    return joined
