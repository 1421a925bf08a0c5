"""A layer with the reward as an additional input."""

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.models.nn.layers.dense import Dense
from submax.models.nn.layers.injection import Injection, LevelLayer


class Concatenation(Injection):
    """h ← ReLU(W [h, r] + b).

    The columns of W that belong to r are zero initially: all rewards start with the same function,
    as in `Modulation`.
    """

    dense: Dense
    reward_width: int = eqx.field(static=True)

    @classmethod
    def drawn(cls, inputs: int, outputs: int, reward_width: int, rng: np.random.Generator) -> Self:
        layer = Dense.drawn(inputs, outputs, rng)
        zeros = np.zeros((outputs, reward_width), dtype=np.float32)
        weight = np.concatenate([layer.weight, zeros], axis=1)
        return cls(Dense(weight, layer.bias), reward_width)

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        return jax.nn.relu(self.dense(jnp.concatenate([x, reward])))

    def moved(self, encoded_edges: NDArray[np.float32]) -> Self:
        """Replace the columns of W that belong to r by their values at the new bin edges."""
        weight, columns = np.split(np.asarray(self.dense.weight), [-self.reward_width], axis=-1)
        moved = (encoded_edges @ columns.swapaxes(-1, -2)).swapaxes(-1, -2)
        joined: Any = np.concatenate([weight, moved], axis=-1)
        return type(self)(Dense(joined, self.dense.bias), self.reward_width)

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """W_l are the columns of W for h; the columns of W for r, times r_l, are part of b_l."""
        weight, columns = np.split(np.asarray(self.dense.weight), [-self.reward_width], axis=-1)
        bias = np.asarray(self.dense.bias)[:, None] + levels @ columns.swapaxes(-1, -2)
        return LevelLayer(np.repeat(weight[:, None], levels.shape[1], axis=1), bias)
