"""A fully connected layer."""

from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp


class Dense(eqx.Module):
    """W x + b, initially with Glorot-uniform W and zero b.

    A layer without inputs consists of b only. Then b is initialized like weights: behind a zero
    layer every ReLU would be inactive, and nothing would be learned.

    Reference: Glorot and Bengio (2010).
    """

    weight: jax.Array
    bias: jax.Array

    @classmethod
    def drawn(cls, inputs: int, outputs: int, key: jax.Array) -> Self:
        """Return a layer with random initial weights ``[outputs, inputs]``."""
        limit = (6 / (inputs + outputs)) ** 0.5
        weight = jax.random.uniform(key, (outputs, inputs), minval=-limit, maxval=limit)
        if inputs == 0:
            return cls(weight, jax.random.uniform(key, (outputs,), minval=-limit, maxval=limit))
        return cls(weight, jnp.zeros(outputs))

    def __call__(self, x: jax.Array) -> jax.Array:
        """Apply the layer: ``[inputs] -> [outputs]``."""
        return self.weight @ x + self.bias
