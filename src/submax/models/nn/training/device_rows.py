"""Minibatches for a device: rows are gathered where the training runs."""

from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.core.memory.held_out import HeldOut
from submax.core.memory.minibatches import Minibatches

RowArray = NDArray[np.float32] | jax.Array


class DeviceRows(NamedTuple):
    """All rows of a training, and a copy of them on the device.

    An accelerator receives the ``table`` once, and then only the indices of minibatches. A row has
    tens of numbers, so that this is a small part of what the rows themselves would take. On a
    processor the ``table`` is None, and numpy gathers the rows. The rows are the same.
    """

    minibatches: Minibatches
    table: jax.Array | None

    @classmethod
    def of(cls, minibatches: Minibatches, on_device: bool | None = None) -> Self:
        """Return the rows; by default they are copied unless the device is the processor."""
        if on_device is None:
            on_device = jax.default_backend() != "cpu"
        return cls(minibatches, jnp.asarray(minibatches.table) if on_device else None)

    def draw(
        self, steps: int, batch: int, rng: np.random.Generator, held_out: HeldOut | None = None
    ) -> RowArray:
        """Draw the minibatches of `Minibatches.draw`, on the device if the table is there."""
        if self.table is None:
            return self.minibatches.draw(steps, batch, rng, held_out)
        places = self.minibatches.places(steps, batch, rng, held_out)
        rows: jax.Array = _gathered(self.table, places.astype(np.int32))
        return rows


@jax.jit
def _gathered(table: jax.Array, places: jax.Array) -> jax.Array:
    # All places are inside the table; "clip" leaves out the check for those that are not.
    return jnp.take(table, places, axis=0, mode="clip")
