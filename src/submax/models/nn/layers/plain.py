"""A layer that the reward does not enter."""

from typing import Self

import jax
import numpy as np
from numpy.typing import NDArray

from submax.models.nn.layers.dense import Dense
from submax.models.nn.layers.injection import Injection, LevelLayer


class Plain(Injection):
    """h ← ReLU(W h + b), whatever the reward is."""

    dense: Dense

    @classmethod
    def drawn(cls, inputs: int, outputs: int, _reward_width: int, rng: np.random.Generator) -> Self:
        return cls(Dense.drawn(inputs, outputs, rng))

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        return jax.nn.relu(self.dense(x))

    def moved(self, encoded_edges: NDArray[np.float32]) -> "Plain":
        return self

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        weight, bias = np.asarray(self.dense.weight), np.asarray(self.dense.bias)
        count = levels.shape[1]
        return LevelLayer(
            np.repeat(weight[:, None], count, axis=1), np.repeat(bias[:, None], count, axis=1)
        )
