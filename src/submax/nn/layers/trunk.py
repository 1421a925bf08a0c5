"""Two hidden layers with injection."""

from typing import Self

import equinox as eqx
import jax

from submax.nn.layers.concatenation import Concatenation
from submax.nn.layers.gate import Gate
from submax.nn.layers.injection import Injection
from submax.nn.layers.modulation import Modulation

INJECTIONS: dict[str, type[Modulation] | type[Gate] | type[Concatenation]] = {
    "modulation": Modulation,
    "gate": Gate,
    "concatenation": Concatenation,
}


class Trunk(eqx.Module):
    """What encoder, decoder and softmax network have in common."""

    first: Injection
    second: Injection

    @classmethod
    def drawn(cls, inputs: int, hidden: int, width: int, injection: str, key: jax.Array) -> Self:
        """Two layers of ``hidden`` units with new parameters."""
        keys = jax.random.split(key)
        layer = INJECTIONS[injection]
        return cls(
            layer.drawn(inputs, hidden, width, keys[0]),
            layer.drawn(hidden, hidden, width, keys[1]),
        )

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """``[I]`` and embedded ``[E] -> [H]``."""
        return self.second(self.first(x, reward), reward)
