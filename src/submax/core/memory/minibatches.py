"""Random minibatches of the rows of a buffer."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.memory.buffer import Buffer
from submax.core.memory.context_scaling import ContextScaling
from submax.core.memory.held_out import HeldOut

FLOAT32_ROWS = 2**16
"""Up to this many rows, indices are drawn with float32 numbers: their 24 random bits are enough."""


class Minibatches(NamedTuple):
    """The rows of all replicas as one table, ``[R · capacity, D + S + E + 1]``.

    The columns are context, action, encoded reward and weight, all float32, so that a minibatch
    takes one look-up and one transfer to the device. Each replica has ``filled [R]`` rows.
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
        rows: NDArray[np.float32] = self.table.take(
            self.places(steps, batch, rng, held_out), axis=0
        )
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
