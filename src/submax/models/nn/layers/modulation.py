"""A layer that the reward modulates feature by feature."""

from typing import Self

import jax
import numpy as np
from numpy.typing import NDArray

from submax.models.nn.layers.dense import Dense, Parameter
from submax.models.nn.layers.injection import Injection, LevelLayer


class Modulation(Injection):
    """h ← ReLU((1 + γ(r)) ⊙ (W h + b) + β(r)).

    γ and β are linear in the encoding of r, with the tables ``scale`` and ``shift``, ``[E, H]``.
    They are zero initially: all rewards start with the same function, and training separates them
    as far as the data do.

    Reference: Perez et al. (2018).
    """

    dense: Dense
    scale: Parameter
    shift: Parameter

    @classmethod
    def drawn(cls, inputs: int, outputs: int, reward_width: int, rng: np.random.Generator) -> Self:
        zeros = np.zeros((reward_width, outputs), dtype=np.float32)
        return cls(Dense.drawn(inputs, outputs, rng), zeros, zeros)

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        return jax.nn.relu((1 + reward @ self.scale) * self.dense(x) + reward @ self.shift)

    def moved(self, encoded_edges: NDArray[np.float32]) -> "Modulation":
        """Replace each row of both tables by γ and β of the new bin edge."""
        scale, shift = (encoded_edges @ np.asarray(part) for part in (self.scale, self.shift))
        return Modulation(self.dense, scale, shift)

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """Return the layers with W_l = (1 + γ_l) ⊙ W and b_l = (1 + γ_l) ⊙ b + β_l."""
        scale = 1 + levels @ np.asarray(self.scale)
        weight, bias = np.asarray(self.dense.weight), np.asarray(self.dense.bias)
        return LevelLayer(
            scale[..., None] * weight[:, None],
            scale * bias[:, None] + levels @ np.asarray(self.shift),
        )
