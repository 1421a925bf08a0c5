"""Exact policy gradients of small problems, by enumeration of all actions."""

import jax
import jax.numpy as jnp
import pytest

from submax.models.nn.designs import Example


@pytest.fixture(scope="session")
def exact_gradient():
    """The gradient of −Σ_a π(a | c) v(a) by the outputs of a network, action by action."""

    def gradient(design, output, listing, value):
        def loss(output):
            chosen = jax.vmap(lambda action: design.log_prob(output, action))(listing)
            return -jnp.exp(chosen) @ value

        return jax.jit(jax.grad(loss))(output)

    return gradient


@pytest.fixture(scope="session")
def row_gradients():
    """The gradient of the loss of one row for each logged action: ``[M, Z, O]``."""

    def gradients(design, output, listing, columns):
        def one(action, column):
            example = Example(jnp.zeros(design.context_width), action, column)
            return jax.grad(lambda output: design.surrogate(output, example))(output)

        return jax.jit(jax.vmap(one))(listing, columns)

    return gradients
