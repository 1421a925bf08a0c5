"""What networks are trained with: hyper-parameters, held-out rows, scaled contexts, minibatches."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import Checked, Count, NonNegative, Positive, whole_number
from submax.core.errors import InputError
from submax.core.serialization import serializable
from submax.models.memory import Buffer

STOPPING_EARLY = ("fitted", "converged")
"""Values of ``steps`` with which the loss of held-out rows decides when training stops."""


@dataclass(frozen=True)
class Training(Checked):
    """Training by AdamW on minibatches of ``batch`` rows of the buffer.

    ``steps`` is the number of steps of every refit, from new parameters, or from the last ones if
    ``continued`` is true. If it is "fitted", one row in ten is held out, and a replica stops when
    the loss of its held-out rows no longer decreases; the parameters with the lowest held-out loss
    are used. Contexts are then standardized, see `ContextScaling`, and reward-conditioned networks
    continue from the last refit, unless the number of rows has passed a power of two. "converged"
    is the same with much more patience and a higher limit, for a policy that is trained once, on a
    log: it takes up to ten times as long.

    Reference: Loshchilov and Hutter (2019); Prechelt (1998) for stopping early.
    """

    steps: int | Literal["fitted", "converged"] = "fitted"
    batch: Count = 256
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 0.0
    continued: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.steps, str) or not self.stops_early:
            whole_number("steps", self.steps, at_least=1)
        elif self.continued:
            raise InputError(
                f"continued=True does not work with steps={self.steps!r}: leave continued "
                "out, or give steps as a number"
            )

    @property
    def stops_early(self) -> bool:
        """Whether the loss of held-out rows decides when training stops."""
        return self.steps in STOPPING_EARLY


EVERY = 10
"""One row in 10 is held out: few enough to lose little, and enough to detect overfitting."""
MAX_HELD_OUT_ROWS = 2048
"""Largest number of held-out rows of a replica; the latest ones are used. It bounds the cost of
computing the held-out loss."""
MIN_ROWS_TO_HOLD_OUT = 64
"""With fewer rows than this none is held out, because six rows cannot tell when to stop. The value
is a power of two, so the first refit with held-out rows starts from new parameters."""


class HeldOut(NamedTuple):
    """Every tenth row of each replica from index ``first [R]`` on, ``rows [R]`` rows in total.

    A row that was used for training is never held out later, as long as rows keep their index.
    """

    first: Integers
    rows: Integers

    @classmethod
    def of(cls, filled: Integers) -> Self:
        candidates = np.where(filled < MIN_ROWS_TO_HOLD_OUT, 0, filled // EVERY)
        rows = np.minimum(candidates, MAX_HELD_OUT_ROWS)
        return cls(EVERY * (candidates - rows), rows)

    def places(self) -> tuple[Integers, Booleans]:
        """Return indices of held-out rows, and which are used, both ``[R, MAX_HELD_OUT_ROWS]``."""
        index = np.arange(MAX_HELD_OUT_ROWS)
        there = index < self.rows[:, None]
        return np.where(there, self.first[:, None] + EVERY * (index + 1) - 1, 0), there

    def trained_on(self, index: Integers) -> Integers:
        """Return the buffer index of each training row, by its number: ``[..., R, n]``."""
        beyond = np.maximum(index - self.first[:, None], 0)
        # From ``first`` on, every tenth row is skipped.
        return index + np.minimum(beyond // (EVERY - 1), self.rows[:, None])


CUT_OFF = 5.0
"""Features are clipped at this many standard deviations from their mean: a normal feature hardly
ever lies beyond, and a single outlier cannot dominate the training."""
NUMBERS_AT_ONCE = 2**20
"""Squared deviations are summed over blocks of about this many numbers, which bounds memory."""
CONSTANT = 1e-6
"""If the deviation of a feature is below this share of its mean, the feature counts as constant:
float32 has about 7 digits."""


@serializable("context-scaling")
class ContextScaling(NamedTuple):
    """Parameters of z = min(max((c − mean) · factor, −limit), limit), each ``[R, 1, D]``.

    By default each feature of z has the standard deviation 1 / √D, so z is about as long as a
    one-hot action. With ``largest`` in ``of``, a feature keeps its own deviation if this lies
    between 1 / √D and ``largest``. The factor of a constant feature is 0.
    """

    mean: NDArray[np.float32]
    factor: NDArray[np.float32]
    limit: NDArray[np.float32]

    @classmethod
    def of(cls, buffer: Buffer, largest: float = 0.0) -> Self:
        count = np.maximum(buffer.filled, 1)[:, None, None]
        # Behind the rows of a replica the contexts are zero, so the sum needs no mask.
        mean = buffer.context.sum(axis=1, keepdims=True, dtype=np.float64) / count
        replicas, rows, width = buffer.context.shape
        squares = np.zeros((replicas, 1, width))
        step = max(1, NUMBERS_AT_ONCE // max(replicas * width, 1))
        for begin in range(0, rows, step):
            apart = buffer.context[:, begin : begin + step] - mean
            there = np.arange(begin, begin + apart.shape[1]) < buffer.filled[:, None]
            squares += (apart**2).sum(axis=1, keepdims=True, where=there[..., None])
        deviation = np.sqrt(squares / count)
        varies = deviation > CONSTANT * np.abs(mean)
        least = 1 / np.sqrt(max(buffer.context.shape[2], 1))
        wanted = np.clip(deviation, least, max(largest, least))
        factor = np.where(varies, wanted / np.where(varies, deviation, 1.0), 0.0)
        parts = (mean, factor, CUT_OFF * wanted)
        return cls(*(part.astype(np.float32) for part in parts))

    def scaled(self, context: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        apart = (context - self.mean).astype(np.float32) * self.factor
        # As ``np.clip`` does, which takes twice as long for a single context.
        return np.minimum(np.maximum(apart, -self.limit), self.limit)


FLOAT32_ROWS = 2**16
"""Up to this many rows, indices are drawn with float32 numbers: their 24 random bits are enough."""


class Minibatches(NamedTuple):
    """The ``filled [R]`` rows of all replicas as one table, ``[R · capacity, D + S + E + 1]``.

    The columns are context, action, encoded reward and weight, all float32.
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
        """Return the table for a buffer.

        ``action [R, capacity, S]`` are scaled actions, ``reward [R, capacity, E]`` encoded rewards.
        """
        context = buffer.context if scaling is None else scaling.scaled(buffer.context)
        columns = (context, action, reward, buffer.weight[..., None])
        table = np.concatenate(columns, axis=-1, dtype=np.float32, casting="unsafe")
        return cls(table.reshape(-1, table.shape[-1]), buffer.filled)

    def draw(
        self, steps: int, batch: int, rng: np.random.Generator, held_out: HeldOut | None = None
    ) -> NDArray[np.float32]:
        """Draw training rows uniformly with replacement: ``[steps, R, batch, D + S + E + 1]``."""
        return self.table.take(self.places(steps, batch, rng, held_out), axis=0)

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

    def _in_table(self, row: Integers) -> Integers:
        """Return the places in the table of these rows of each replica, ``[..., R, n]``."""
        replicas = len(self.filled)
        first = np.arange(replicas) * (len(self.table) // replicas)
        return row + first[:, None]


STEPS_WITHOUT_HELD_OUT = 50
"""Number of steps for a replica with too few rows to hold any out."""
LOWEST_STEP_LIMIT = 500
EPOCHS = 20
HIGHEST_STEP_LIMIT = 4000
"""The limit on steps is EPOCHS passes over the rows, but at least LOWEST_STEP_LIMIT and at most
HIGHEST_STEP_LIMIT. The highest limit bounds the cost of a refit."""
LENGTHENED = 10
"""With steps="converged" the limit is this many times as high: such a training runs once."""


def most_steps(filled: Integers, training: Training) -> NDArray[np.int32]:
    """Return the largest number of steps of a refit: ``[R]``."""
    lengthened = LENGTHENED if training.steps == "converged" else 1
    passes = lengthened * np.clip(
        EPOCHS * filled // training.batch, LOWEST_STEP_LIMIT, HIGHEST_STEP_LIMIT
    )
    return np.where(filled < MIN_ROWS_TO_HOLD_OUT, STEPS_WITHOUT_HELD_OUT, passes).astype(np.int32)
