"""A trained network over slots, conditioned on the reward level, as numpy arrays."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.running.stored import stored
from submax.models.networks.replicas import where_chosen

INJECTION_FORMS = ("modulation", "gate", "concatenation", "input-concatenation")
"""The ways in which a reward enters the layers of a network."""

Weights = NDArray[np.float32]


@stored("slot-network")
class SlotNetwork(NamedTuple):
    """Logits of every choice in every slot, at L reward levels and Z draws of the latent variable.

    At a fixed level every form of injection is a plain layer, so each level has its own weights.
    The latent draws are fixed, so their contribution to the first layer is part of its bias. With D
    context numbers, H hidden units and C choices in all slots together, shapes are ``context_weight
    [R, L, D, H]``, ``first_bias [R, L, Z, H]``, ``second_weight [R, L, H, H]``, ``second_bias
    [R, L, 1, H]``, ``head_weight [R, 1, H, C]``, ``head_bias [R, 1, 1, C]``.
    """

    context_weight: Weights
    first_bias: Weights
    second_weight: Weights
    second_bias: Weights
    head_weight: Weights
    head_bias: Weights

    @classmethod
    def silent(
        cls, replicas: int, levels: int, draws: int, width: int, hidden: int, choices: int
    ) -> Self:
        """Return an untrained network, in which every choice has logit 0."""
        shapes = (
            (replicas, levels, width, hidden),
            (replicas, levels, draws, hidden),
            (replicas, levels, hidden, hidden),
            (replicas, levels, 1, hidden),
            (replicas, 1, hidden, choices),
            (replicas, 1, 1, choices),
        )
        return cls(*(np.zeros(shape, dtype=np.float32) for shape in shapes))

    def at_level(self, level: int) -> Self:
        """Return the network at one level, which keeps its axis."""
        return self._replace(
            context_weight=self.context_weight[:, level : level + 1],
            first_bias=self.first_bias[:, level : level + 1],
            second_weight=self.second_weight[:, level : level + 1],
            second_bias=self.second_bias[:, level : level + 1],
        )

    def restricted(self, kept: Integers) -> Self:
        """Return the network with only the choices ``kept`` among all C."""
        return self._replace(
            head_weight=self.head_weight[..., kept], head_bias=self.head_bias[..., kept]
        )

    def where(self, chosen: Booleans, other: Self) -> Self:
        """Return this network in the replicas ``chosen [R]``, and the other one elsewhere."""
        return type(self)(*where_chosen(chosen, self, other))

    def logits(self, context: Floats) -> Weights:
        """Return the logits of all choices: ``[R, n, D] -> [R, L, n, Z, C]``."""
        replicas, levels, _, hidden = self.context_weight.shape
        rows, draws = context.shape[1], self.first_bias.shape[2]
        given = context.astype(np.float32)[:, None] @ self.context_weight
        first = given[:, :, :, None, :] + self.first_bias[:, :, None]
        np.maximum(first, 0, out=first)
        second = first.reshape(replicas, levels, rows * draws, hidden) @ self.second_weight
        second += self.second_bias
        np.maximum(second, 0, out=second)
        logits: Weights = np.matmul(second, self.head_weight)
        logits += self.head_bias
        return logits.reshape(replicas, levels, rows, draws, logits.shape[-1])
