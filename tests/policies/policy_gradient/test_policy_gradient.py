import jax.numpy as jnp
import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.memory.memory import Memory
from submax.core.spaces.box import Box
from submax.core.spaces.slots import Slots
from submax.policies.policy_gradient.advantages import Advantages
from submax.policies.policy_gradient.policy_gradient import PolicyGradient
from submax.testing.rules.examples import some_contexts, some_feedback

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


def test_columns_are_standardized_rewards_and_propensities(seed):
    feedback = some_feedback(PROBLEM, 2, 12, seed)
    state = POLICY.init(PROBLEM, 2, np.random.default_rng(seed))
    buffer = state.buffer.add(feedback, Memory(), None)
    columns = POLICY.columns(state._replace(buffer=buffer), np.random.default_rng(seed))
    reward = feedback.reward
    spread = reward.std(axis=1, keepdims=True)
    expected = (reward - reward.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    np.testing.assert_allclose(columns[..., 0], expected)
    np.testing.assert_allclose(columns[..., 1], feedback.log_prob)
    assert Advantages.of(PROBLEM.scale, buffer).deviation.shape == (2, 1)


def test_it_learns_which_arm_suits_which_context(taught, earned, training):
    policy = PolicyGradient(hidden=8, training=training)
    assert earned(policy, taught(policy)) > 0.7


def test_before_the_first_feedback_it_is_uniform(problem, seed):
    state = POLICY.init(problem, 4, np.random.default_rng(seed))
    assert np.allclose(POLICY.probabilities(state, some_contexts(problem, 4, 6, seed)), 1 / 3)


def test_missing_propensities_and_real_valued_actions_are_refused(problem, seed):
    rng = np.random.default_rng(seed)
    silent = some_feedback(problem, 2, 5, seed)._replace(log_prob=None)
    with raises_code("invalid-input"):
        POLICY.update(POLICY.init(problem, 2, rng), silent, rng)
    with raises_code("invalid-input"):
        POLICY.init(Problem(Box((0.0,), (1.0,))), 1, rng)


@pytest.mark.parametrize("name", ["epsilon", "hidden", "regularization", "largest_weight"])
def test_bad_parameters_are_refused(name):
    with raises_code("invalid-input"):
        PolicyGradient(**{name: -1})
