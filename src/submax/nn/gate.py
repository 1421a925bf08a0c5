"""A sigmoid gate."""

from typing import Self

import jax
import numpy as np
from scipy.special import expit

from submax.nn.dense import Dense
from submax.nn.injection import Injection, LevelLayer


class Gate(Injection):
    """h ← ReLU(W h + b) ⊙ σ(U r + d).

    On a one-hot r, U r + d is a row of a table ``opening [L, H]``.

    Reference: van den Oord et al. (2016); Kumar et al. (2019).
    """

    dense: Dense
    opening: jax.Array

    @classmethod
    def drawn(cls, inputs: int, outputs: int, levels: int, key: jax.Array) -> Self:
        """A layer with new parameters."""
        first, second = jax.random.split(key)
        limit = (6 / (levels + outputs)) ** 0.5
        opening = jax.random.uniform(second, (levels, outputs), minval=-limit, maxval=limit)
        return cls(Dense.drawn(inputs, outputs, first), opening)

    def __call__(self, x: jax.Array, level: jax.Array) -> jax.Array:
        """Gate what the activation let through."""
        return jax.nn.relu(self.dense(x)) * jax.nn.sigmoid(level @ self.opening)

    def folded(self) -> LevelLayer:
        """The gate g_l is positive, so it can stand before the ReLU: g_l ⊙ W and g_l ⊙ b."""
        gate = expit(np.asarray(self.opening))
        return LevelLayer(
            gate[..., None] * self.dense.weight[:, None], gate * self.dense.bias[:, None]
        )
