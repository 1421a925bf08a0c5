"""A layer with the reward as an additional input."""

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.nn.layers.dense import Dense
from submax.nn.layers.injection import Injection, LevelLayer


class Concatenation(Injection):
    """h ← ReLU(W [h, r] + b), the simplest form, which the paper reports to fail.

    The columns of W that belong to r are zero initially: all rewards start with the same function,
    as in `Modulation`.
    """

    dense: Dense
    width: int = eqx.field(static=True)

    @classmethod
    def drawn(cls, inputs: int, outputs: int, width: int, key: jax.Array) -> Self:
        layer = Dense.drawn(inputs, outputs, key)
        weight = jnp.concatenate([layer.weight, jnp.zeros((outputs, width))], axis=1)
        return cls(Dense(weight, layer.bias), width)

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        return jax.nn.relu(self.dense(jnp.concatenate([x, reward])))

    def moved(self, bin_edges: NDArray[np.float32]) -> "Concatenation":
        weight, columns = np.split(np.asarray(self.dense.weight), [-self.width], axis=-1)
        moved = (bin_edges @ columns.swapaxes(-1, -2)).swapaxes(-1, -2)
        joined: Any = np.concatenate([weight, moved], axis=-1)
        return Concatenation(Dense(joined, self.dense.bias), self.width)

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        weight, columns = np.split(np.asarray(self.dense.weight), [-self.width], axis=-1)
        bias = np.asarray(self.dense.bias)[:, None] + levels @ columns.swapaxes(-1, -2)
        return LevelLayer(np.repeat(weight[:, None], levels.shape[1], axis=1), bias)
