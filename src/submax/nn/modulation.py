"""Feature-wise modulation."""

from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from submax.nn.dense import Dense
from submax.nn.injection import Injection, LevelLayer


class Modulation(Injection):
    """h ← ReLU((1 + γ(r)) ⊙ (W h + b) + β(r)).

    γ is ``scale`` and β is ``shift``, both a table ``[L, H]`` that begins at zero, so that all
    levels begin as one and part only as far as the data part them.

    Reference: Perez et al. (2018).
    """

    dense: Dense
    scale: jax.Array
    shift: jax.Array

    @classmethod
    def drawn(cls, inputs: int, outputs: int, levels: int, key: jax.Array) -> Self:
        """A layer with new parameters."""
        zeros = jnp.zeros((levels, outputs))
        return cls(Dense.drawn(inputs, outputs, key), zeros, zeros)

    def __call__(self, x: jax.Array, level: jax.Array) -> jax.Array:
        """Scale and shift before the activation."""
        return jax.nn.relu((1 + level @ self.scale) * self.dense(x) + level @ self.shift)

    def folded(self) -> LevelLayer:
        """W_l = (1 + γ_l) ⊙ W and b_l = (1 + γ_l) ⊙ b + β_l."""
        scale = 1 + np.asarray(self.scale)
        weight, bias = np.asarray(self.dense.weight), np.asarray(self.dense.bias)
        return LevelLayer(
            scale[..., None] * weight[:, None], scale * bias[:, None] + np.asarray(self.shift)
        )
