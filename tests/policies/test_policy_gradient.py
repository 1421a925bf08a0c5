"""Losses whose gradients are those of the expected reward, by enumeration of all actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from submax import Problem, Slots
from submax.models.nn.designs import Example
from submax.policies import ActorCritic, PolicyGradient
from submax.testing.problems import some_feedback


def exact_gradient(design, output, listing, value):
    """The gradient of −Σ_a π(a | c) v(a) by the outputs of a network, action by action."""

    def loss(output):
        chosen = jax.vmap(lambda action: design.log_prob(output, action))(listing)
        return -jnp.exp(chosen) @ value

    return jax.jit(jax.grad(loss))(output)


def row_gradients(design, output, listing, columns):
    """The gradient of the loss of one row for each logged action: ``[M, C]``."""

    def one(action, column):
        example = Example(jnp.zeros(design.context_width), action, column)
        return jax.grad(lambda output: design.surrogate(output, example))(output)

    return jax.jit(jax.vmap(one))(listing, columns)


pytestmark = pytest.mark.xdist_group("ValueBelief")

PROBLEM = Problem(Slots((2, 3)))
LISTING = jnp.asarray(PROBLEM.space.listing(), dtype=jnp.float32)
POLICY = PolicyGradient(hidden=4, largest_weight=1e9)


@pytest.mark.parametrize("baseline", [0.0, 0.7])
def test_the_expected_gradient_is_that_of_the_expected_reward(baseline, seed):
    """Sum over all logged actions, each with its probability q: an enumeration, not a sample."""
    rng = np.random.default_rng(seed)
    design = POLICY.design(PROBLEM)
    output = jnp.asarray(rng.normal(size=5), dtype=jnp.float32)
    value, logged = rng.random(6), rng.dirichlet(np.ones(6))
    columns = np.stack([value - baseline, np.log(logged)], axis=1).astype(np.float32)
    rows = row_gradients(design, output, LISTING, jnp.asarray(columns))
    expected = exact_gradient(design, output, LISTING, jnp.asarray(value, dtype=jnp.float32))
    found = np.einsum("m,mo->o", logged, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_weights_are_truncated(seed):
    """If a weight is above W, the gradient is W (r − b) ∇ log π, and so proportional to W."""
    output = jnp.asarray(np.random.default_rng(seed).normal(size=5), dtype=jnp.float32)
    tiny = jnp.asarray(np.tile([1.0, -20.0], (6, 1)), dtype=jnp.float32)
    designs = (PolicyGradient(hidden=4, largest_weight=w).design(PROBLEM) for w in (0.5, 1.0))
    small, large = (row_gradients(design, output, LISTING, tiny) for design in designs)
    np.testing.assert_allclose(2 * small, large, rtol=1e-5)


def test_the_gradient_is_that_of_the_values_of_the_critic(seed):
    """Whatever was chosen, the gradient is that of Σ_b π(b) v(b), by enumeration."""
    rng = np.random.default_rng(seed)
    design = ActorCritic(hidden=4).design(PROBLEM)
    output = jnp.asarray(rng.normal(size=5), dtype=jnp.float32)
    value = jnp.asarray(rng.normal(size=6), dtype=jnp.float32)
    rows = row_gradients(design, output, LISTING, jnp.tile(value, (6, 1)))
    expected = exact_gradient(design, output, LISTING, value)
    np.testing.assert_allclose(rows, np.broadcast_to(expected, rows.shape), rtol=1e-4, atol=1e-5)


def test_columns_hold_values_of_the_critic(problem, training, seed):
    """Rewards and propensities reach the actor by its critic alone."""
    policy, rng = ActorCritic(hidden=8, training=training), np.random.default_rng(seed)
    feedback = some_feedback(problem, 4, 12, seed)._replace(log_prob=None)
    state = policy.update(policy.init(problem, 4, rng), feedback, rng)
    columns = policy.columns(state.problem, state.buffer, state.critic)
    values = state.critic.values(feedback.context)
    spread = feedback.reward.std(axis=1, keepdims=True)
    spread = np.where(spread > 0, spread, 1.0)
    expected = (values - feedback.reward.mean(axis=1)[:, None, None]) / spread[..., None]
    np.testing.assert_allclose(columns, expected, atol=1e-5)
