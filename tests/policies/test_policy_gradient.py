"""Losses whose gradients are those of the expected reward, by enumeration of all actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from submax import Problem, Slots
from submax.models.nn.designs import Example
from submax.policies import (
    ActorCritic,
    DoublyRobustGradient,
    PolicyGradient,
)
from submax.testing.problems import some_feedback


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
    """The gradient of the loss of one row for each logged action: ``[M, C]``."""

    def gradients(design, output, listing, columns):
        def one(action, column):
            example = Example(jnp.zeros(design.context_width), action, column)
            return jax.grad(lambda output: design.surrogate(output, example))(output)

        return jax.jit(jax.vmap(one))(listing, columns)

    return gradients


pytestmark = pytest.mark.xdist_group("ValueBelief")

PROBLEM = Problem(Slots((2, 3)))
POLICY = PolicyGradient(hidden=4, largest_weight=1e9)


@pytest.mark.parametrize("baseline", [0.0, 0.7])
def test_the_expected_gradient_is_that_of_the_expected_reward(
    baseline, exact_gradient, row_gradients, seed
):
    """Sum over all logged actions, each with its probability q: an enumeration, not a sample."""
    rng = np.random.default_rng(seed)
    design = POLICY.design(PROBLEM)
    listing = jnp.asarray(PROBLEM.space.listing(), dtype=jnp.float32)
    output = jnp.asarray(rng.normal(size=5), dtype=jnp.float32)
    value, logged = rng.random(6), rng.dirichlet(np.ones(6))
    columns = np.stack([value - baseline, np.log(logged)], axis=1).astype(np.float32)
    rows = row_gradients(design, output, listing, jnp.asarray(columns))
    expected = exact_gradient(design, output, listing, jnp.asarray(value, dtype=jnp.float32))
    found = np.einsum("m,mo->o", logged, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_weights_are_truncated(row_gradients, seed):
    """If a weight is above W, the gradient is W (r − b) ∇ log π, and so proportional to W."""
    rng = np.random.default_rng(seed)
    output = jnp.asarray(rng.normal(size=5), dtype=jnp.float32)
    listing = jnp.asarray(PROBLEM.space.listing(), dtype=jnp.float32)
    tiny = jnp.asarray(np.tile([1.0, -20.0], (6, 1)), dtype=jnp.float32)
    small, large = (
        row_gradients(
            PolicyGradient(hidden=4, largest_weight=w).design(PROBLEM), output, listing, tiny
        )
        for w in (0.5, 1.0)
    )
    np.testing.assert_allclose(2 * small, large, rtol=1e-5)


def test_the_gradient_is_that_of_the_values_of_the_critic(exact_gradient, row_gradients, seed):
    """Whatever was chosen, the gradient is that of Σ_b π(b) v(b), by enumeration."""
    rng = np.random.default_rng(seed)
    design = ActorCritic(hidden=4).design(PROBLEM)
    listing = jnp.asarray(PROBLEM.space.listing(), dtype=jnp.float32)
    output = jnp.asarray(rng.normal(size=5), dtype=jnp.float32)
    value = jnp.asarray(rng.normal(size=6), dtype=jnp.float32)
    columns = jnp.concatenate([jnp.zeros((6, 2)), jnp.tile(value, (6, 1))], axis=1)
    rows = row_gradients(design, output, listing, columns)
    expected = exact_gradient(design, output, listing, value)
    np.testing.assert_allclose(rows, np.broadcast_to(expected, rows.shape), rtol=1e-4, atol=1e-5)


LISTING = PROBLEM.space.listing()
DESIGN = DoublyRobustGradient(hidden=4, largest_weight=1e9).design(PROBLEM)


@pytest.fixture(scope="module")
def gradients(exact_gradient, row_gradients, seed):
    """Gradients of single rows, their mean and the truth, for a critic that errs by ``error``."""

    def computed(error):
        rng = np.random.default_rng(seed)
        output = jnp.asarray(rng.normal(size=5), dtype=jnp.float32)
        truth, logged = rng.random(6), rng.dirichlet(np.ones(6))
        critic = truth + error * rng.normal(size=6)
        columns = [[truth[a] - critic[a], np.log(logged[a]), *critic] for a in range(6)]
        actions = jnp.asarray(LISTING, dtype=jnp.float32)
        rows = row_gradients(DESIGN, output, actions, jnp.asarray(columns, dtype=jnp.float32))
        expected = exact_gradient(DESIGN, output, actions, jnp.asarray(truth, dtype=jnp.float32))
        return np.asarray(rows), np.einsum("m,mo->o", logged, rows), np.asarray(expected)

    return computed


def test_whatever_the_critic_the_expected_gradient_is_exact(gradients):
    _, mean, expected = gradients(error=0.8)
    np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-5)


def test_with_an_exact_critic_every_row_has_the_exact_gradient(gradients):
    rows, _, expected = gradients(error=0.0)
    np.testing.assert_allclose(rows, np.broadcast_to(expected, rows.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [ActorCritic, DoublyRobustGradient])
def test_columns_hold_residuals_and_values_of_the_critic(kind, problem, training, seed):
    """Rewards and propensities reach the actor of ActorCritic by its critic alone."""
    policy, rng = kind(hidden=8, training=training), np.random.default_rng(seed)
    feedback = some_feedback(problem, 4, 12, seed)
    if kind is ActorCritic:
        feedback = feedback._replace(log_prob=None)
    state = policy.update(policy.init(problem, 4, rng), feedback, rng)
    columns, values = policy.columns(state), state.critic.values(feedback.context)
    reward = feedback.reward
    spread = reward.std(axis=1, keepdims=True)
    spread = np.where(spread > 0, spread, 1.0)
    expected = (values - reward.mean(axis=1)[:, None, None]) / spread[..., None]
    np.testing.assert_allclose(columns[..., 2:], expected, atol=1e-5)
    if kind is ActorCritic:
        assert not columns[..., :2].any()
    else:
        chosen = np.take_along_axis(values, feedback.action, axis=-1)[..., 0]
        np.testing.assert_allclose(columns[..., 0], (reward - chosen) / spread, atol=1e-5)
        np.testing.assert_array_equal(columns[..., 1], feedback.log_prob)
