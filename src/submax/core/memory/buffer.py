"""Feedback so far, kept for estimators that learn from it again and again."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.memory import NEGLIGIBLE, Memory
from submax.core.rewards.ruler import Ruler
from submax.core.running.stored import stored


@stored("buffer")
class Buffer(NamedTuple):
    """The rows that are there, first come first, ``filled [R]`` of them in each replica.

    Arrays are ``[R, capacity, ...]``; what lies beyond a replica's rows is zero, weight included.
    ``context`` has the precision of the contexts that were added, float32 or float64; if they
    differ, the higher one.
    ``log_prob`` is NaN where the logging policy did not say; ``lot`` is a number drawn for each
    row, by which a reservoir is chosen.
    """

    context: NDArray[np.floating[Any]]
    action: NDArray[Any]
    reward: Floats
    log_prob: Floats
    weight: Floats
    lot: NDArray[np.float32]
    filled: Integers

    @classmethod
    def empty(cls, problem: Problem, replicas: int) -> Self:
        """No rows."""
        shape = (replicas, 0)
        return cls(
            np.zeros((*shape, problem.context_width), dtype=np.float32),
            np.zeros((*shape, problem.space.slots), dtype=_stored(problem)),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape, dtype=np.float32),
            np.zeros(replicas, dtype=np.int64),
        )

    def add(self, feedback: Feedback, memory: Memory, rng: np.random.Generator) -> Self:
        """What memory keeps of the old rows, and the new rows behind; weight 0 is left out."""
        there = feedback.weight > 0
        new = there.sum(axis=1)
        old, weight, lot = self, feedback.weight, None
        if memory.reservoir is not None:
            lot = _lots(there, rng)
            # A replica without news keeps what it has.
            old = old._selected(_highest(old, memory.reservoir) | (new == 0)[:, None])
        if memory.discount < 1:
            later = np.maximum(new[:, None] - np.cumsum(there, axis=1), 0)
            fading = memory.discount**later
            weight, there = weight * fading, there & (fading > NEGLIGIBLE)
            old = old._faded(memory.discount**new)
        joined = old._joined(feedback, there, weight, lot)
        if memory.window is not None:
            place = np.arange(joined.reward.shape[1])
            joined = joined._selected(place >= (joined.filled - memory.window)[:, None])
        return joined

    def level_share(self, ruler: Ruler) -> Floats:
        """How often each level occurs, ``[R, L]``; equal shares before the first row."""
        levels = ruler.levels.shape[1]
        index = ruler.nearest(self.reward)
        mass = np.stack(
            [(self.weight * (index == level)).sum(axis=1) for level in range(levels)], axis=1
        )
        total = mass.sum(axis=1, keepdims=True)
        share: Floats = np.where(total > 0, mass / np.where(total > 0, total, 1.0), 1 / levels)
        return share

    def for_deciding(self) -> Self:
        """Without rows, which are remembered only to learn further."""
        none = {name: array[:, :0] for name, array in self._asdict().items() if name != "filled"}
        return self._replace(**none)

    def _faded(self, factor: Floats) -> Self:
        """Every weight times the factor of its replica, ``[R]``, without what weighs nothing."""
        faded = self._replace(weight=self.weight * factor[:, None])
        heaviest = faded.weight.max(axis=1, keepdims=True, initial=0)
        return faded._selected((faded.weight > NEGLIGIBLE * heaviest) | (factor == 1)[:, None])

    def _joined(
        self,
        feedback: Feedback,
        there: Booleans,
        weight: Floats,
        lot: NDArray[np.float32] | None,
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
            nothing if lot is None else lot,
        )
        capacity = int(filled.max(initial=0))
        precision = np.result_type(self.context, feedback.context)
        before = self._replace(context=self.context.astype(precision, copy=False))
        joined: list[Any] = [
            _behind(old, values[replica, row], (replica, place), capacity)
            for old, values in zip(list[Any](before[:-1]), new, strict=True)
        ]
        context, action, reward, log_prob, weight, lots = joined
        return type(self)(context, action, reward, log_prob, weight, lots, filled)

    def _selected(self, keep: Booleans) -> Self:
        """The rows to keep, ``[R, capacity]``, in their order."""
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
        context, action, reward, log_prob, weight, lot = chosen
        return type(self)(context, action, reward, log_prob, weight, lot, filled)


def _stored(problem: Problem) -> type[np.int32] | type[np.float64]:
    return np.float64 if problem.space.reals else np.int32


def _lots(there: Booleans, rng: np.random.Generator) -> NDArray[np.float32]:
    """A number for every row; rows that are not there change nothing: ``[R, n]``."""
    most = np.count_nonzero(there, axis=1).max(initial=1)
    drawn = rng.random((most, len(there)), np.float32).T
    place = np.maximum(np.cumsum(there, axis=1) - 1, 0)
    return np.take_along_axis(drawn, place, axis=1)


def _highest(buffer: Buffer, count: int) -> Booleans:
    """The rows with the highest lots, so many in each replica: ``[R, capacity]``."""
    beyond = np.arange(buffer.lot.shape[1]) >= buffer.filled[:, None]
    rank = np.argsort(np.argsort(np.where(beyond, 1.0, -buffer.lot), axis=1), axis=1)
    chosen: Booleans = rank < count
    return chosen


def _behind(old: NDArray, new: NDArray, place: tuple[Integers, Integers], capacity: int) -> NDArray:  # type: ignore[type-arg]  # any dtype, the same in and out
    joined = np.zeros((old.shape[0], capacity, *old.shape[2:]), dtype=old.dtype)
    joined[:, : old.shape[1]] = old
    joined[place] = new
    return joined
