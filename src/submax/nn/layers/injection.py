"""Contract of a layer into which the reward is injected."""

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
    """h ← f(W h + b, r), with the reward r as its embedding of width E: one-hot at a knot."""

    @abstractmethod
    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """``[I]`` and ``[E] -> [H]``."""

    @abstractmethod
    def moved(self, bin_edges: NDArray[np.float32]) -> "Injection":
        """The same function of the reward with other bin_edges, from numpy parameters.

        ``bin_edges [R, E, E]`` are the new bin_edges, embedded by the old ones: what enters a layer is
        linear in the embedding, so that its value at the new bin_edges is all that is needed.
        """

    @abstractmethod
    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """ReLU(W_l h + b_l) at levels ``[R, L, E]``, from numpy parameters of all replicas."""
