"""Losses whose gradients are those of the expected reward, by enumeration of all actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from submax import Box, Memory, Problem, Slots
from submax.policies import (
    ActorCritic,
    DoublyRobustGradient,
    GenerativePolicyGradient,
    PolicyGradient,
)
from submax.testing.rules.examples import some_feedback

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
    output = jnp.asarray(rng.normal(size=(1, 5)), dtype=jnp.float32)
    value, logged = rng.random(6), rng.dirichlet(np.ones(6))
    columns = np.stack([value - baseline, np.log(logged)], axis=1).astype(np.float32)
    rows = row_gradients(design, output, listing, jnp.asarray(columns))
    expected = exact_gradient(design, output, listing, jnp.asarray(value, dtype=jnp.float32))
    found = np.einsum("m,mzo->zo", logged, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_weights_are_truncated(row_gradients, seed):
    """If a weight is above W, the gradient is W (r − b) ∇ log π, and so proportional to W."""
    rng = np.random.default_rng(seed)
    output = jnp.asarray(rng.normal(size=(1, 5)), dtype=jnp.float32)
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
    output = jnp.asarray(rng.normal(size=(1, 5)), dtype=jnp.float32)
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
        output = jnp.asarray(rng.normal(size=(1, 5)), dtype=jnp.float32)
        truth, logged = rng.random(6), rng.dirichlet(np.ones(6))
        critic = truth + error * rng.normal(size=6)
        columns = [[truth[a] - critic[a], np.log(logged[a]), *critic] for a in range(6)]
        actions = jnp.asarray(LISTING, dtype=jnp.float32)
        rows = row_gradients(DESIGN, output, actions, jnp.asarray(columns, dtype=jnp.float32))
        expected = exact_gradient(DESIGN, output, actions, jnp.asarray(truth, dtype=jnp.float32))
        return np.asarray(rows), np.einsum("m,mzo->zo", logged, rows), np.asarray(expected)

    return computed


def test_whatever_the_critic_the_expected_gradient_is_exact(gradients):
    _, mean, expected = gradients(error=0.8)
    np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-5)


def test_with_an_exact_critic_every_row_has_the_exact_gradient(gradients):
    rows, _, expected = gradients(error=0.0)
    np.testing.assert_allclose(rows, np.broadcast_to(expected, rows.shape), rtol=1e-4, atol=1e-5)


def test_columns_hold_residuals_and_values_of_the_critic(problem, training, seed):
    policy = DoublyRobustGradient(hidden=8, training=training)
    feedback = some_feedback(problem, 4, 12, seed)
    rng = np.random.default_rng(seed)
    state = policy.update(policy.init(problem, 4, rng), feedback, rng)
    columns = policy.columns(state, rng)
    values = state.critic.values(feedback.context)
    mean, spread = feedback.reward.mean(axis=1), feedback.reward.std(axis=1)
    spread = np.where(spread > 0, spread, 1.0)
    for replica, row in np.ndindex(4, 12):
        chosen = values[replica, row, feedback.action[replica, row, 0]]
        residual = (feedback.reward[replica, row] - chosen) / spread[replica]
        expected = (values[replica, row] - mean[replica]) / spread[replica]
        assert columns[replica, row, 0] == pytest.approx(residual, abs=1e-5)
        assert columns[replica, row, 1] == feedback.log_prob[replica, row]
        np.testing.assert_allclose(columns[replica, row, 2:], expected, atol=1e-5)


GENERATIVE = GenerativePolicyGradient(hidden=4, latent=2, draws=3, components=2, largest_weight=1e9)


def test_the_expected_gradient_goes_through_the_mean_over_draws(
    exact_gradient, row_gradients, seed
):
    """Sum over all logged actions, each with its probability q; a mixture of three decoders."""
    problem, rng = Problem(Slots((2, 3))), np.random.default_rng(seed)
    design = GENERATIVE.design(problem)
    listing = jnp.asarray(problem.space.listing(), dtype=jnp.float32)
    output = jnp.asarray(rng.normal(size=(3, 5)), dtype=jnp.float32)
    value, logged = rng.random(6), rng.dirichlet(np.ones(6))
    columns = np.stack([value - 0.4, np.log(logged)], axis=1).astype(np.float32)
    rows = row_gradients(design, output, listing, jnp.asarray(columns))
    expected = exact_gradient(design, output, listing, jnp.asarray(value, dtype=jnp.float32))
    found = np.einsum("m,mzo->zo", logged, rows)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_over_numbers_it_is_the_gradient_of_the_integral(row_gradients, seed):
    """Integrate −∫ π(x) v(x) dx and the rows' gradients by midpoints, for a uniform logging."""
    problem, rng = Problem(Box((0.0,), (1.0,))), np.random.default_rng(seed)
    design = GENERATIVE.design(problem)
    points = jnp.asarray((np.arange(400) + 0.5) / 400, dtype=jnp.float32)[:, None]
    output = jnp.asarray(rng.normal(size=(3, 6)), dtype=jnp.float32)
    value = jnp.sin(5 * points[:, 0])

    def loss(output):
        density = jnp.exp(jax.vmap(lambda x: design.log_prob(output, x))(points))
        return -(density * value).mean()

    columns = jnp.stack([value - 0.2, jnp.zeros(400)], axis=1)
    rows = row_gradients(design, output, points, columns)
    np.testing.assert_allclose(rows.mean(axis=0), jax.jit(jax.grad(loss))(output), atol=2e-3)


def test_logged_densities_are_those_on_the_unit_cube(seed):
    problem, rng = Problem(Box((-2.0,), (6.0,))), np.random.default_rng(seed)
    feedback = some_feedback(problem, 2, 5, seed)
    state = GENERATIVE.init(problem, 2, rng)
    state = state._replace(buffer=state.buffer.add(feedback, Memory(), rng))
    found = GENERATIVE.columns(state, rng)[..., 1]
    np.testing.assert_allclose(found, feedback.log_prob + np.log(8.0))
