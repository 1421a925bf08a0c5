"""Rows of a buffer, drawn for training."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.memory.buffer import Buffer
from submax.core.memory.context_scaling import ContextScaling
from submax.core.memory.held_out import HeldOut

FEW = 2**16


class Minibatches(NamedTuple):
    """The rows of all replicas as one table ``[R · capacity, D + S + E + 1]``, to be drawn from.

    The columns are context, action, what the network is told of the reward and weight, all
    float32: one look-up and one transfer for each draw. ``filled [R]`` rows of each replica are
    there.
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
        """Lay the buffer out as a table, with ``action [R, capacity, S]`` as networks take it.

        ``reward [R, capacity, E]`` is what they are told of the reward, and ``scaling`` how they
        are given contexts.
        """
        context = buffer.context if scaling is None else scaling.scaled(buffer.context)
        columns = (context, action, reward, buffer.weight[..., None])
        table = np.concatenate(columns, axis=-1, dtype=np.float32, casting="unsafe")
        return cls(table.reshape(-1, table.shape[-1]), buffer.filled)

    def draw(
        self, steps: int, batch: int, rng: np.random.Generator, held_out: HeldOut | None = None
    ) -> NDArray[np.float32]:
        """Draw rows uniformly with replacement, for every replica on its own.

        Returns ``[steps, R, batch, D + S + E + 1]``, whatever the size of the buffer. Rows that
        are held out are not drawn.
        """
        replicas = len(self.filled)
        rows = self.filled if held_out is None else self.filled - held_out.rows
        # 24 random bits are enough for few rows, and twice as fast to draw.
        kind = np.float32 if self.filled.max(initial=0) <= FEW else np.float64
        uniform = rng.random((steps, replicas, batch), kind)
        row = (uniform * rows[:, None].astype(kind)).astype(np.int64)
        # A number below one, times the count, can round up to the count itself.
        np.minimum(row, np.maximum(rows - 1, 0)[:, None], out=row)
        return self._taken(row if held_out is None else held_out.trained_on(row))

    def held(self, held_out: HeldOut, batch: int) -> NDArray[np.float32]:
        """The rows that are held out, ``[T, R, batch, D + S + E + 1]``.

        The shape does not depend on the buffer: what is missing has weight 0.
        """
        places, there = held_out.places()
        rows = self._taken(places)
        rows[~there] = 0.0
        return rows.reshape(len(rows), -1, batch, rows.shape[-1]).swapaxes(0, 1)

    def _taken(self, row: Integers) -> NDArray[np.float32]:
        """The rows at these places of each replica, ``[..., R, n]``."""
        replicas = len(self.filled)
        first = np.arange(replicas) * (len(self.table) // replicas)
        taken: NDArray[np.float32] = self.table.take(row + first[:, None], axis=0)
        return taken
