"""A sigmoid gate."""

from typing import Self

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from submax.nn.layers.dense import Dense
from submax.nn.layers.injection import Injection, LevelLayer


class Gate(Injection):
    """h ← ReLU(W h + b) ⊙ σ(U r + d).

    On a one-hot r, U r + d is a row of a table ``opening [E, H]``.

    Reference: van den Oord et al. (2016); Kumar et al. (2019).
    """

    dense: Dense
    opening: jax.Array

    @classmethod
    def drawn(cls, inputs: int, outputs: int, width: int, key: jax.Array) -> Self:
        """A layer with new parameters."""
        first, second = jax.random.split(key)
        limit = (6 / (width + outputs)) ** 0.5
        opening = jax.random.uniform(second, (width, outputs), minval=-limit, maxval=limit)
        return cls(Dense.drawn(inputs, outputs, first), opening)

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Gate what the activation let through."""
        return jax.nn.relu(self.dense(x)) * jax.nn.sigmoid(reward @ self.opening)

    def moved(self, bin_edges: NDArray[np.float32]) -> "Gate":
        """What opens the gate at the new bin_edges."""
        return Gate(self.dense, bin_edges @ np.asarray(self.opening))

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """The gate g_l is positive, so it can stand before the ReLU: g_l ⊙ W and g_l ⊙ b."""
        gate = expit(levels @ np.asarray(self.opening))
        return LevelLayer(
            gate[..., None] * self.dense.weight[:, None], gate * self.dense.bias[:, None]
        )
