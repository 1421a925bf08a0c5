"""Two hidden layers with injection."""

from typing import Self

import equinox as eqx
import jax

from submax.nn.concatenation import Concatenation
from submax.nn.gate import Gate
from submax.nn.injection import Injection
from submax.nn.modulation import Modulation

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
    def drawn(cls, inputs: int, hidden: int, levels: int, injection: str, key: jax.Array) -> Self:
        """Two layers of ``hidden`` units with new parameters."""
        keys = jax.random.split(key)
        layer = INJECTIONS[injection]
        return cls(
            layer.drawn(inputs, hidden, levels, keys[0]),
            layer.drawn(hidden, hidden, levels, keys[1]),
        )

    def __call__(self, x: jax.Array, level: jax.Array) -> jax.Array:
        """``[I]`` and one-hot ``[L] -> [H]``."""
        return self.second(self.first(x, level), level)
