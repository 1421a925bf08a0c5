"""Base class of layers that the reward enters."""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from numpy.typing import NDArray


class LevelLayer(NamedTuple):
    """A plain layer for each reward level: ``weight [R, L, H, I]``, ``bias [R, L, H]``."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


class Injection(eqx.Module):
    """h ← f(W h + b, r), with the encoding r of the reward, ``[E]``, one-hot at a bin edge."""

    @abstractmethod
    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Apply the layer: ``[I]`` and ``[E] -> [H]``."""

    @abstractmethod
    def moved(self, encoded_edges: NDArray[np.float32]) -> "Injection":
        """Return the layer for other bin edges that is the same function of the reward.

        ``encoded_edges [R, E, E]`` are the new bin edges, encoded by the old ones. The layer is
        linear in the encoding, so its values at the new bin edges determine it. Parameters are
        numpy arrays.
        """

    @abstractmethod
    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """Return the layers ReLU(W_l h + b_l) at encoded levels ``[R, L, E]``, for all replicas."""
