"""Two hidden layers that the reward enters."""

from typing import Self, TypeAlias

import equinox as eqx
import jax
import numpy as np

from submax.models.nn.layers.concatenation import Concatenation
from submax.models.nn.layers.gate import Gate
from submax.models.nn.layers.injection import Injection
from submax.models.nn.layers.modulation import Modulation
from submax.models.nn.layers.naive_concatenation import NaiveConcatenation
from submax.models.nn.layers.plain import Plain

Layer: TypeAlias = type[Modulation] | type[Gate] | type[Concatenation] | type[Plain]

INJECTIONS: dict[str, tuple[Layer, Layer]] = {
    "modulation": (Modulation, Modulation),
    "gate": (Gate, Gate),
    "concatenation": (Concatenation, Concatenation),
    "input-concatenation": (NaiveConcatenation, Plain),
    "plain": (Plain, Plain),
}
"""The first and the second layer of every form of injection; "plain" has no reward at all."""


class Trunk(eqx.Module):
    """The hidden layers of the encoder, the decoder and the softmax network."""

    first: Injection
    second: Injection

    @classmethod
    def drawn(
        cls, inputs: int, hidden: int, reward_width: int, injection: str, rng: np.random.Generator
    ) -> Self:
        """Return two layers of ``hidden`` units with random initial parameters."""
        first, second = INJECTIONS[injection]
        return cls(
            first.drawn(inputs, hidden, reward_width, rng),
            second.drawn(hidden, hidden, reward_width, rng),
        )

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Apply both layers: ``[I]`` and an encoded reward ``[E] -> [H]``."""
        return self.second(self.first(x, reward), reward)
