import jax
import jax.numpy as jnp
import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.memory.memory import Memory
from submax.core.spaces.box import Box
from submax.core.spaces.slots import Slots
from submax.policies.policy_gradient.generative_policy_gradient import GenerativePolicyGradient
from submax.testing.rules.examples import some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")

POLICY = GenerativePolicyGradient(hidden=4, latent=2, draws=3, components=2, largest_weight=1e9)


def test_the_expected_gradient_goes_through_the_mean_over_draws(
    exact_gradient, row_gradients, seed
):
    """Sum over all logged actions, each with its probability q; a mixture of three decoders."""
    problem, rng = Problem(Slots((2, 3))), np.random.default_rng(seed)
    design = POLICY.design(problem)
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
    design = POLICY.design(problem)
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
    state = POLICY.init(problem, 2, rng)
    state = state._replace(buffer=state.buffer.add(feedback, Memory(), rng))
    found = POLICY.columns(state, rng)[..., 1]
    np.testing.assert_allclose(found, feedback.log_prob + np.log(8.0))


def test_it_learns_which_arm_suits_which_context(taught, earned, training):
    policy = GenerativePolicyGradient(hidden=8, latent=2, draws=3, training=training)
    assert earned(policy, taught(policy)) > 0.7


@pytest.mark.parametrize("name", ["latent", "draws", "components", "largest_weight"])
def test_bad_parameters_are_refused(name):
    with raises_code("invalid-input"):
        GenerativePolicyGradient(**{name: 0})
