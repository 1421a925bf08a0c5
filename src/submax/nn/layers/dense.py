"""A plain layer."""

from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp


class Dense(eqx.Module):
    """W x + b, with W Glorot-uniform and b zero at first.

    Without inputs b is all there is, and begins as weights do: at zero nothing behind it learns.

    Reference: Glorot and Bengio (2010).
    """

    weight: jax.Array
    bias: jax.Array

    @classmethod
    def drawn(cls, inputs: int, outputs: int, key: jax.Array) -> Self:
        """A layer with new weights ``[outputs, inputs]``."""
        limit = (6 / (inputs + outputs)) ** 0.5
        weight = jax.random.uniform(key, (outputs, inputs), minval=-limit, maxval=limit)
        if inputs == 0:
            return cls(weight, jax.random.uniform(key, (outputs,), minval=-limit, maxval=limit))
        return cls(weight, jnp.zeros(outputs))

    def __call__(self, x: jax.Array) -> jax.Array:
        """``[inputs] -> [outputs]``."""
        return self.weight @ x + self.bias
