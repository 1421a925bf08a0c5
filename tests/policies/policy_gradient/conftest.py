"""Exact policy gradients of small problems, by enumeration of all actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from submax.core.contracts.feedback import Feedback
from submax.models.nn.designs.design import Example

REPLICAS = 4


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


@pytest.fixture(scope="session")
def taught(problem, seed):
    """Let a policy learn from uniform choices that arm 1 pays where the first number is 1, else 0.

    Arm 2 never pays. The choices were made with known probabilities.
    """

    def learn(policy):
        rng = np.random.default_rng((seed, 5))
        context = rng.choice([-1.0, 1.0], size=(REPLICAS, 400, 2))
        action = rng.integers(3, size=(REPLICAS, 400, 1))
        reward = (action[..., 0] == (context[..., 0] > 0)).astype(np.float64)
        log_prob = np.full(reward.shape, -np.log(3))
        feedback = Feedback(context, action, reward, log_prob, np.ones(reward.shape))
        return policy.update(policy.init(problem, REPLICAS, rng), feedback, rng)

    return learn
