"""Rows of a buffer, drawn for training."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.buffer import Buffer

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
    def of(cls, buffer: Buffer, action: NDArray[Any], reward: Floats) -> Self:
        """Lay the buffer out as a table, with ``action [R, capacity, S]`` as networks take it.

        ``reward [R, capacity, E]`` is what they are told of the reward.
        """
        columns = (buffer.context, action, reward, buffer.weight[..., None])
        table = np.concatenate(columns, axis=-1, dtype=np.float32, casting="unsafe")
        return cls(table.reshape(-1, table.shape[-1]), buffer.filled)

    def draw(self, steps: int, batch: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw rows uniformly with replacement, for every replica on its own.

        Returns ``[steps, R, batch, D + S + E + 1]``, whatever the size of the buffer.
        """
        replicas = len(self.filled)
        # 24 random bits are enough for few rows, and twice as fast to draw.
        kind = np.float32 if self.filled.max(initial=0) <= FEW else np.float64
        uniform = rng.random((steps, replicas, batch), kind)
        row = (uniform * self.filled[:, None].astype(kind)).astype(np.int64)
        # A number below one, times the count, can round up to the count itself.
        np.minimum(row, np.maximum(self.filled - 1, 0)[:, None], out=row)
        first = np.arange(replicas) * (len(self.table) // replicas)
        drawn: NDArray[np.float32] = self.table.take(row + first[:, None], axis=0)
        return drawn
