"""The reward level as one more input."""

from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from submax.nn.dense import Dense
from submax.nn.injection import Injection, LevelLayer


class Concatenation(Injection):
    """h ← ReLU(W [h, r] + b): the plain way, which the paper found to be ignored by the network."""

    dense: Dense
    levels: int = eqx.field(static=True)

    @classmethod
    def drawn(cls, inputs: int, outputs: int, levels: int, key: jax.Array) -> Self:
        """A layer with new parameters."""
        return cls(Dense.drawn(inputs + levels, outputs, key), levels)

    def __call__(self, x: jax.Array, level: jax.Array) -> jax.Array:
        """Append the level."""
        return jax.nn.relu(self.dense(jnp.concatenate([x, level])))

    def folded(self) -> LevelLayer:
        """The column of each level is part of its bias."""
        weight, columns = np.split(np.asarray(self.dense.weight), [-self.levels], axis=-1)
        bias = np.asarray(self.dense.bias)[:, None] + columns.swapaxes(-1, -2)
        return LevelLayer(np.repeat(weight[:, None], self.levels, axis=1), bias)
