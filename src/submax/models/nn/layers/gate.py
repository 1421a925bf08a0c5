"""A layer that the reward gates by a sigmoid."""

from typing import Self

import jax
import numpy as np
import scipy
from numpy.typing import NDArray

from submax.models.nn.layers.dense import Dense, Parameter
from submax.models.nn.layers.injection import Injection, LevelLayer


class Gate(Injection):
    """h ← ReLU(W h + b) ⊙ σ(U r + d).

    For a one-hot r, U r + d is a row of the table ``opening [E, H]``, which is zero initially: all
    rewards start with the same function, as in `Modulation`.

    Reference: van den Oord et al. (2016); Kumar et al. (2019).
    """

    dense: Dense
    opening: Parameter

    @classmethod
    def drawn(cls, inputs: int, outputs: int, reward_width: int, rng: np.random.Generator) -> Self:
        zeros = np.zeros((reward_width, outputs), dtype=np.float32)
        return cls(Dense.drawn(inputs, outputs, rng), zeros)

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        return jax.nn.relu(self.dense(x)) * jax.nn.sigmoid(reward @ self.opening)

    def moved(self, encoded_edges: NDArray[np.float32]) -> "Gate":
        """Replace each row of the table by U r + d of the new bin edge r."""
        return Gate(self.dense, encoded_edges @ np.asarray(self.opening))

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """Multiply W and b by the gate g_l, which is positive and so commutes with the ReLU."""
        gate = scipy.special.expit(levels @ np.asarray(self.opening))
        return LevelLayer(
            gate[..., None] * self.dense.weight[:, None], gate * self.dense.bias[:, None]
        )
