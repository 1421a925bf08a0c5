"""Stored feedback, for models that are fitted again to all of it."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import Checked, Count, Factor
from submax.core.conditioning import normalized
from submax.core.errors import InputError
from submax.core.numerics import tally
from submax.core.problem import Feedback, Problem
from submax.core.rewards import RewardEncoding
from submax.core.serialization import serializable

NEGLIGIBLE = 1e-4
"""Rows whose weight has fallen below this share of the largest weight are dropped."""


@dataclass(frozen=True)
class Memory(Checked):
    """All feedback by default; less if the truth may change, or if memory is short.

    ``window`` keeps only the latest rows, this many. ``reservoir`` keeps the rows of the last
    update, and a uniform random sample of this many older rows. ``discount`` multiplies the weight
    of a row by this factor for every later row, and can be combined with either of the others.

    Reference: Vitter (1985); Garivier and Moulines (2011).
    """

    window: Count | None = None
    reservoir: Count | None = None
    discount: Factor = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is not None and self.reservoir is not None:
            raise InputError(
                "window and reservoir exclude each other: leave one out",
                parameter="reservoir",
            )

    @property
    def drops_rows(self) -> bool:
        """Whether single rows are forgotten, so sums over rows are not enough to remember."""
        return self.window is not None or self.reservoir is not None

    @property
    def forgets(self) -> bool:
        """Whether old rows are dropped or count less."""
        return self.drops_rows or self.discount < 1


@serializable("buffer")
class Buffer(NamedTuple):
    """The stored rows of each replica in order of arrival, ``filled [R]`` of them.

    Arrays are ``[R, capacity, ...]``; behind the rows of a replica all values are zero. ``context``
    has the highest precision of the added contexts. ``log_prob`` is NaN if it was not logged. A
    reservoir keeps the rows with the highest ``priority``, a uniform random number.
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
        nothing = np.zeros((replicas, 0))
        context = np.zeros((replicas, 0, problem.context_width), dtype=np.float32)
        kind = np.float64 if problem.space.reals else np.int32
        action = np.zeros((replicas, 0, problem.space.slots), dtype=kind)
        filled = np.zeros(replicas, dtype=np.int64)
        priority = nothing.astype(np.float32)
        return cls(context, action, nothing, nothing, nothing, priority, filled)

    def add(self, feedback: Feedback, memory: Memory, rng: np.random.Generator) -> Self:
        """Return the old rows that the memory keeps, followed by new rows of positive weight."""
        there = feedback.weight > 0
        new = there.sum(axis=1)
        old, weight, priority = self, feedback.weight, np.zeros(there.shape, np.float32)
        if memory.reservoir is not None:
            # Absent rows do not use up random numbers.
            drawn = rng.random((new.max(initial=1), len(new)), np.float32).T
            number = np.maximum(np.cumsum(there, axis=1) - 1, 0)
            priority = np.take_along_axis(drawn, number, axis=1)
            # A replica without new rows keeps all of its rows.
            old = old._selected(_highest(old, memory.reservoir) | (new == 0)[:, None])
        if memory.discount < 1:
            later = np.maximum(new[:, None] - np.cumsum(there, axis=1), 0)
            factor = memory.discount**later
            weight, there = weight * factor, there & (factor > NEGLIGIBLE)
            old = old._replace(weight=old.weight * memory.discount ** new[:, None])
            heaviest = old.weight.max(axis=1, keepdims=True, initial=0)
            old = old._selected((old.weight > NEGLIGIBLE * heaviest) | (new == 0)[:, None])
        log_prob = np.full(there.shape, np.nan) if feedback.log_prob is None else feedback.log_prob
        columns = (feedback.context, feedback.action, feedback.reward, log_prob, weight, priority)
        joined = old._joined(columns, there)
        if memory.window is not None:
            index = np.arange(joined.reward.shape[1])
            joined = joined._selected(index >= (joined.filled - memory.window)[:, None])
        return joined

    def level_share(self, encoding: RewardEncoding) -> Floats:
        """Return the share of the weight at each level, ``[R, L]``; equal shares without rows."""
        index, levels = encoding.nearest(self.reward), encoding.levels.shape[1]
        return normalized(tally(index, self.weight, levels))

    def for_deciding(self) -> Self:
        none = {name: array[:, :0] for name, array in self._asdict().items() if name != "filled"}
        return self._replace(**none)

    def _joined(self, columns: tuple[Any, ...], there: Booleans) -> Self:
        """Return the rows, followed by those of ``columns [R, n, ...]`` that are ``there``."""
        replica, row = np.nonzero(there)
        index = self.filled[replica] + (np.cumsum(there, axis=1) - 1)[replica, row]
        filled = self.filled + there.sum(axis=1)
        before: list[Any] = list(self[:-1])
        before[0] = self.context.astype(np.result_type(self.context, columns[0]), copy=False)
        joined: list[Any] = []
        for old, new in zip(before, columns, strict=True):
            shape = (len(filled), int(filled.max(initial=0)), *old.shape[2:])
            column = np.zeros(shape, dtype=old.dtype)
            column[:, : old.shape[1]] = old
            column[replica, index] = new[replica, row]
            joined.append(column)
        return type(self)._make([*joined, filled])

    def _selected(self, keep: Booleans) -> Self:
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
        return type(self)._make([*chosen, filled])


def _highest(buffer: Buffer, count: int) -> Booleans:
    """Mark the ``count`` rows of each replica with the highest priorities: ``[R, capacity]``."""
    beyond = np.arange(buffer.priority.shape[1]) >= buffer.filled[:, None]
    rank = np.argsort(np.argsort(np.where(beyond, 1.0, -buffer.priority), axis=1), axis=1)
    return rank < count


@serializable("stored-buffer")
class StoredBuffer(Buffer):
    """Rows that are written to files, because a model is fitted to them again to decide."""

    __slots__ = ()

    def for_deciding(self) -> Self:
        return self


NUMBERS_PER_PART = 2**22
"""About this many intermediate numbers are held in memory at a time: 34 MB."""


def importance_values(estimator: Any, params: Any, numbers: int) -> Floats:
    """Return V_l = (1/N) Σ_i w_i r_i π(a_i | c_i, l) / q_i over the rows, ``[R, L]``.

    N is the sum of the weights w, and q the logged probability; NaN if it was not logged for a
    row whose reward is not 0. The rows are those of ``params.buffer``, and ``numbers`` is how many
    intermediate numbers the estimator's belief needs for one row of all replicas.
    """
    buffer: Buffer = params.buffer
    earned = buffer.weight * buffer.reward
    paid = np.any(earned != 0, axis=0)
    with np.errstate(invalid="ignore"):
        ratio = np.where(earned != 0, earned * np.exp(-buffer.log_prob), 0.0)[:, paid]
    context = buffer.context[:, paid].astype(np.float64)
    action = buffer.action[:, paid, None].astype(params.problem.space.dtype)
    total = np.zeros(params.reward_encoding.levels.shape)
    rows = max(1, NUMBERS_PER_PART // numbers)
    for begin in range(0, ratio.shape[1], rows):
        part = slice(begin, begin + rows)
        found = estimator.belief(params, context[:, part]).prob(action[:, part])[..., 0]
        total += np.einsum("rn,rnl->rl", ratio[:, part], found)
    weight = buffer.weight.sum(axis=1)
    return total / np.where(weight > 0, weight, 1.0)[:, None]
