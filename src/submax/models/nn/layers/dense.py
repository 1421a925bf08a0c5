"""A fully connected layer."""

from typing import Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Parameter: TypeAlias = jax.Array | NDArray[np.float32]
"""A parameter of a layer: of numpy when it is drawn, of JAX in training."""


class Dense(eqx.Module):
    """W x + b, initially with Glorot-uniform W and zero b.

    A layer without inputs consists of b only. Then b is initialized like weights: behind a zero
    layer every ReLU would be inactive, and nothing would be learned.

    Reference: Glorot and Bengio (2010).
    """

    weight: Parameter
    bias: Parameter

    @classmethod
    def drawn(cls, inputs: int, outputs: int, rng: np.random.Generator) -> Self:
        """Return a layer with random initial weights ``[outputs, inputs]``."""
        limit = (6 / (inputs + outputs)) ** 0.5
        weight = rng.uniform(-limit, limit, (outputs, inputs)).astype(np.float32)
        bias = rng.uniform(-limit, limit, outputs) if inputs == 0 else np.zeros(outputs)
        return cls(weight, bias.astype(np.float32))

    def __call__(self, x: jax.Array) -> jax.Array:
        """Apply the layer: ``[inputs] -> [outputs]``."""
        return jnp.matmul(self.weight, x) + self.bias
