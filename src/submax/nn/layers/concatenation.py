"""The reward as one more input."""

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.nn.layers.dense import Dense
from submax.nn.layers.injection import Injection, LevelLayer


class Concatenation(Injection):
    """h ← ReLU(W [h, r] + b): the plain way, which the paper found to be ignored by the network."""

    dense: Dense
    width: int = eqx.field(static=True)

    @classmethod
    def drawn(cls, inputs: int, outputs: int, width: int, key: jax.Array) -> Self:
        """A layer with new parameters."""
        return cls(Dense.drawn(inputs + width, outputs, key), width)

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Append the reward."""
        return jax.nn.relu(self.dense(jnp.concatenate([x, reward])))

    def moved(self, bin_edges: NDArray[np.float32]) -> "Concatenation":
        """The columns of the reward at the new bin_edges."""
        weight, columns = np.split(np.asarray(self.dense.weight), [-self.width], axis=-1)
        moved = (bin_edges @ columns.swapaxes(-1, -2)).swapaxes(-1, -2)
        joined: Any = np.concatenate([weight, moved], axis=-1)
        return Concatenation(Dense(joined, self.dense.bias), self.width)

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """What the columns of the reward add is part of the bias."""
        weight, columns = np.split(np.asarray(self.dense.weight), [-self.width], axis=-1)
        bias = np.asarray(self.dense.bias)[:, None] + levels @ columns.swapaxes(-1, -2)
        return LevelLayer(np.repeat(weight[:, None], levels.shape[1], axis=1), bias)
