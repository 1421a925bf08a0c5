"""Stored feedback, for models that are fitted again to all of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Actions, Booleans, Floats, Integers
from submax.core.checks import whole_number
from submax.core.errors import InputError
from submax.core.problem import Feedback, Problem
from submax.core.rewards import RewardEncoding
from submax.core.serialization import serializable

NEGLIGIBLE = 1e-4
"""Rows whose weight has fallen below this share of the largest weight are dropped."""


@dataclass(frozen=True)
class Memory:
    """All feedback by default; less if the truth may change, or if memory is short.

    ``window`` keeps only the latest rows, this many. ``reservoir`` keeps the rows of the last
    update, and a uniform random sample of this many older rows. ``discount`` multiplies the weight
    of a row by this factor for every later row, and can be combined with either of the others.

    Reference: Vitter (1985); Garivier and Moulines (2011).
    """

    window: int | None = None
    reservoir: int | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        for name, rows in (("window", self.window), ("reservoir", self.reservoir)):
            if rows is not None:
                whole_number(name, rows, at_least=1)
        if self.window is not None and self.reservoir is not None:
            raise InputError(
                "window and reservoir were both given, and only one is allowed: leave one out",
                parameter="reservoir",
            )
        number = isinstance(self.discount, (int, float)) and not isinstance(self.discount, bool)
        if not (number and 0 < self.discount <= 1):
            raise InputError(
                f"discount must be a number above 0, at most 1, not {self.discount!r}",
                parameter="discount",
            )

    @property
    def drops_rows(self) -> bool:
        """Whether single rows are forgotten, so sums over rows are not enough to remember."""
        return self.window is not None or self.reservoir is not None

    @property
    def forgets(self) -> bool:
        """Whether old rows are dropped or count less."""
        return self.drops_rows or self.discount < 1

    def check_keeps_rows(self, who: str) -> None:
        """Raise an ``InputError`` if rows are dropped, for those ``who`` remember sums alone."""
        if self.drops_rows:
            raise InputError(
                f"the {who} remembers sums, and cannot take single rows out of them again: use "
                "memory = { discount = 0.999 } instead of a window or reservoir"
            )


@serializable("buffer")
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
            index = np.arange(joined.reward.shape[1])
            joined = joined._selected(index >= (joined.filled - memory.window)[:, None])
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
        index = self.filled[replica] + (np.cumsum(there, axis=1) - 1)[replica, row]
        filled = self.filled + there.sum(axis=1)
        nothing = np.zeros(there.shape)
        log_prob = nothing + np.nan if feedback.log_prob is None else feedback.log_prob
        if priority is None:
            priority = nothing.astype(np.float32)
        columns = (feedback.context, feedback.action, feedback.reward, log_prob, weight, priority)
        new: tuple[Any, ...] = columns
        capacity = int(filled.max(initial=0))
        precision = np.result_type(self.context, feedback.context)
        before = self._replace(context=self.context.astype(precision, copy=False))
        joined: list[Any] = [
            _appended(old, values[replica, row], (replica, index), capacity)
            for old, values in zip(list[Any](before[:-1]), new, strict=True)
        ]
        return type(self)._make([*joined, filled])

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
        return type(self)._make([*chosen, filled])


def _priorities(there: Booleans, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw a number for every row, ``[R, n]``; absent rows do not use up random numbers."""
    most = np.count_nonzero(there, axis=1).max(initial=1)
    drawn = rng.random((most, len(there)), np.float32).T
    index = np.maximum(np.cumsum(there, axis=1) - 1, 0)
    return np.take_along_axis(drawn, index, axis=1)


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


@serializable("stored-buffer")
class StoredBuffer(Buffer):
    """Rows to which a model is fitted again after a state is read from a file.

    The rows of a plain `Buffer` are not written to files, since decisions do not need them.
    """

    __slots__ = ()

    def for_deciding(self) -> Self:
        """Return all rows: without them there would be no model to decide with."""
        return self


EVERY = 10
"""One row in 10 is held out: few enough to lose little, and enough to detect overfitting."""
MAX_HELD_OUT_ROWS = 2048
"""Largest number of held-out rows of a replica; the latest ones are used. It bounds the cost of
computing the held-out loss."""
MIN_ROWS_TO_HOLD_OUT = 64
"""With fewer rows than this none is held out, because six rows cannot tell when to stop. The value
is a power of two, so the first refit with held-out rows starts from new parameters.
"""


class HeldOut(NamedTuple):
    """Every tenth row of each replica from index ``first [R]`` on, ``rows [R]`` rows in total.

    A row that was used for training is never held out later, as long as rows keep their index.
    """

    first: Integers
    rows: Integers

    @classmethod
    def of(cls, filled: Integers) -> Self:
        """Return the held-out rows of replicas with ``filled [R]`` rows."""
        candidates = np.where(filled < MIN_ROWS_TO_HOLD_OUT, 0, filled // EVERY)
        rows = np.minimum(candidates, MAX_HELD_OUT_ROWS)
        return cls(EVERY * (candidates - rows), rows)

    def places(self) -> tuple[Integers, Booleans]:
        """Return indices of held-out rows and which of these entries are in use.

        Both are ``[R, MAX_HELD_OUT_ROWS]``.
        """
        index = np.arange(MAX_HELD_OUT_ROWS)
        there = index < self.rows[:, None]
        return np.where(there, self.first[:, None] + EVERY * (index + 1) - 1, 0), there

    def trained_on(self, index: Integers) -> Integers:
        """Return the buffer index of each training row, by its number: ``[..., R, n]``."""
        beyond = np.maximum(index - self.first[:, None], 0)
        # From ``first`` on, every tenth row is skipped.
        places: Integers = index + np.minimum(beyond // (EVERY - 1), self.rows[:, None])
        return places


CUT_OFF = 5.0
"""Features are clipped at this many standard deviations from their mean: a normal feature hardly
ever lies beyond, and a single outlier cannot dominate the training.
"""
NUMBERS_AT_ONCE = 2**20
"""Squared deviations are summed over blocks of about this many numbers, which bounds memory."""
CONSTANT = 1e-6
"""If the deviation of a feature is below this share of its mean, the feature counts as constant:
float32 has about 7 digits."""


@serializable("context-scaling")
class ContextScaling(NamedTuple):
    """Parameters of z = min(max((c − mean) · factor, −limit), limit), each ``[R, 1, D]``.

    By default each feature of z has the standard deviation 1 / √D, so z is about as long as a
    one-hot action for any number of features D. With ``largest`` in ``of``, a feature keeps its own
    deviation if this lies between 1 / √D and ``largest``. The factor of a constant feature is 0.
    """

    mean: NDArray[np.float32]
    factor: NDArray[np.float32]
    limit: NDArray[np.float32]

    @classmethod
    def of(cls, buffer: Buffer, largest: float = 0.0) -> Self:
        """Return the scaling for the rows of a buffer, for each replica separately."""
        count = np.maximum(buffer.filled, 1)[:, None, None]
        # Behind the rows of a replica the contexts are zero, so the sum needs no mask.
        mean = buffer.context.sum(axis=1, keepdims=True, dtype=np.float64) / count
        deviation = np.sqrt(_squares(buffer, mean) / count)
        varies = deviation > CONSTANT * np.abs(mean)
        least = 1 / np.sqrt(max(buffer.context.shape[2], 1))
        wanted = np.clip(deviation, least, max(largest, least))
        factor = np.where(varies, wanted / np.where(varies, deviation, 1.0), 0.0)
        parts = (mean, factor, CUT_OFF * wanted)
        return cls(*(part.astype(np.float32) for part in parts))

    def scaled(self, context: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Return standardized and clipped contexts: ``[R, n, D] -> [R, n, D]``."""
        apart = (context - self.mean).astype(np.float32) * self.factor
        # As ``np.clip`` does, which takes twice as long for a single context.
        cut: NDArray[np.float32] = np.minimum(np.maximum(apart, -self.limit), self.limit)
        return cut

    def where(self, chosen: Booleans, other: "ContextScaling | None") -> "ContextScaling":
        """Return this scaling in the replicas ``chosen [R]``, and the other, if any, elsewhere."""
        if other is None:
            return self
        here = chosen[:, None, None]
        return ContextScaling(*(np.where(here, *both) for both in zip(self, other, strict=True)))


def _squares(buffer: Buffer, mean: Floats) -> Floats:
    """Return Σ (c − mean)² over the rows of each replica, ``[R, 1, D]``."""
    replicas, rows, width = buffer.context.shape
    total = np.zeros((replicas, 1, width))
    step = max(1, NUMBERS_AT_ONCE // max(replicas * width, 1))
    for begin in range(0, rows, step):
        part = slice(begin, begin + step)
        index = np.arange(rows)[part]
        there = (index < buffer.filled[:, None])[..., None]
        total += ((buffer.context[:, part] - mean) ** 2).sum(axis=1, keepdims=True, where=there)
    return total


FLOAT32_ROWS = 2**16
"""Up to this many rows, indices are drawn with float32 numbers: their 24 random bits are enough."""


class Minibatches(NamedTuple):
    """The ``filled [R]`` rows of all replicas as one table, ``[R · capacity, D + S + E + 1]``.

    The columns are context, action, encoded reward and weight, all float32, so a minibatch
    takes one look-up and one transfer to the device.
    """

    table: NDArray[np.float32]
    filled: Integers

    @classmethod
    def of(
        cls,
        buffer: Buffer,
        action: NDArray[Any],
        reward: Floats,
        scaling: ContextScaling | None = None,
    ) -> Self:
        """Return the table for a buffer, with ``action [R, capacity, S]`` scaled for networks.

        ``reward [R, capacity, E]`` are the encoded rewards. Contexts are standardized by
        ``scaling`` if it is given.
        """
        context = buffer.context if scaling is None else scaling.scaled(buffer.context)
        columns = (context, action, reward, buffer.weight[..., None])
        table = np.concatenate(columns, axis=-1, dtype=np.float32, casting="unsafe")
        return cls(table.reshape(-1, table.shape[-1]), buffer.filled)

    def draw(
        self, steps: int, batch: int, rng: np.random.Generator, held_out: HeldOut | None = None
    ) -> NDArray[np.float32]:
        """Draw rows uniformly with replacement, for every replica separately.

        The result is ``[steps, R, batch, D + S + E + 1]`` for any size of the buffer. Held-out rows
        are not drawn.
        """
        places = self.places(steps, batch, rng, held_out)
        rows: NDArray[np.float32] = self.table.take(places, axis=0)
        return rows

    def places(
        self, steps: int, batch: int, rng: np.random.Generator, held_out: HeldOut | None = None
    ) -> Integers:
        """Draw the places in the table of the rows of `draw`: ``[steps, R, batch]``."""
        replicas = len(self.filled)
        rows = self.filled if held_out is None else self.filled - held_out.rows
        # float32 numbers are drawn twice as fast.
        kind = np.float32 if self.filled.max(initial=0) <= FLOAT32_ROWS else np.float64
        uniform = rng.random((steps, replicas, batch), kind)
        row = (uniform * rows[:, None].astype(kind)).astype(np.int64)
        # A uniform number below 1, times the row count, can round up to the row count.
        np.minimum(row, np.maximum(rows - 1, 0)[:, None], out=row)
        return self._in_table(row if held_out is None else held_out.trained_on(row))

    def held(self, held_out: HeldOut, batch: int) -> NDArray[np.float32]:
        """Return the held-out rows in T batches, ``[T, R, batch, D + S + E + 1]``.

        The shape does not depend on the buffer; unused rows have weight 0.
        """
        places, there = held_out.places()
        rows: NDArray[np.float32] = self.table.take(self._in_table(places), axis=0)
        rows[~there] = 0.0
        return rows.reshape(len(rows), -1, batch, rows.shape[-1]).swapaxes(0, 1)

    def reward_share(self, width: int) -> NDArray[np.float32]:
        """Return how often each of ``width`` encoded rewards occurs among the rows: ``[R, E]``.

        One additional row with equal shares of all rewards keeps the result away from 0 and 1.
        """
        rows = self.table.reshape(len(self.filled), -1, self.table.shape[-1])
        reward, weight = rows[..., -1 - width : -1], rows[..., -1]
        total = np.einsum("rne,rn->re", np.where(weight[..., None] > 0, reward, 0.0), weight)
        share: Floats = (total + 1 / max(width, 2)) / (weight.sum(axis=1) + 1)[:, None]
        return share.astype(np.float32)

    def _in_table(self, row: Integers) -> Integers:
        """Return the places in the table of these rows of each replica, ``[..., R, n]``."""
        replicas = len(self.filled)
        first = np.arange(replicas) * (len(self.table) // replicas)
        places: Integers = row + first[:, None]
        return places


NUMBERS_PER_PART = 2**22
"""About this many intermediate numbers are held in memory at a time: 34 MB."""


def importance_values(
    buffer: Buffer,
    problem: Problem,
    prob: Callable[[Floats, Actions], Floats],
    levels: int,
    numbers: int,
) -> Floats:
    """Return V_l = (1/N) Σ_i w_i r_i π(a_i | c_i, l) / q_i over the rows, ``[R, L]``.

    N is the sum of the weights w, and q the logged probability; NaN if it was not logged for a
    row whose reward is not 0. ``prob(context, action)`` returns π as `Belief.prob` does, and
    ``numbers`` is how many intermediate numbers it needs for one row of all replicas.
    """
    earned = buffer.weight * buffer.reward
    paid = np.any(earned != 0, axis=0)
    with np.errstate(invalid="ignore"):
        ratio = np.where(earned != 0, earned * np.exp(-buffer.log_prob), 0.0)[:, paid]
    context = buffer.context[:, paid].astype(np.float64)
    action = buffer.action[:, paid, None].astype(problem.space.dtype)
    total = np.zeros((len(ratio), levels))
    rows = max(1, NUMBERS_PER_PART // numbers)
    for begin in range(0, ratio.shape[1], rows):
        part = slice(begin, begin + rows)
        found = prob(context[:, part], action[:, part])[..., 0]
        total += np.einsum("rn,rnl->rl", ratio[:, part], found)
    weight = buffer.weight.sum(axis=1)
    result: Floats = total / np.where(weight > 0, weight, 1.0)[:, None]
    return result
