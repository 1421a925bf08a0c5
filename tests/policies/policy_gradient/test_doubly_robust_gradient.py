import jax.numpy as jnp
import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.spaces.slots import Slots
from submax.policies.policy_gradient.doubly_robust_gradient import DoublyRobustGradient
from submax.testing.rules.examples import some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")

PROBLEM = Problem(Slots((2, 3)))
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


def test_it_learns_which_arm_suits_which_context(taught, earned, training):
    policy = DoublyRobustGradient(hidden=8, training=training)
    assert earned(policy, taught(policy)) > 0.7


@pytest.mark.parametrize("name", ["regularization", "largest_weight"])
def test_bad_parameters_are_refused(name):
    with raises_code("invalid-input"):
        DoublyRobustGradient(**{name: -1})
