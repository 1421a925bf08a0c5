"""Contract of a layer into which the reward level is injected."""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from numpy.typing import NDArray


class LevelLayer(NamedTuple):
    """The same layer as one plain layer a level: ``weight [R, L, H, I]``, ``bias [R, L, H]``."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


class Injection(eqx.Module):
    """h ← f(W h + b, r), with the reward level r as a one-hot vector of length L."""

    @abstractmethod
    def __call__(self, x: jax.Array, level: jax.Array) -> jax.Array:
        """``[I]`` and ``[L] -> [H]``."""

    @abstractmethod
    def folded(self) -> LevelLayer:
        """ReLU(W_l h + b_l) for each level, from numpy parameters of all replicas."""
