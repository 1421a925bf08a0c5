from itertools import permutations

import jax.numpy as jnp
import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.spaces.slots import Slots
from submax.policies.policy_gradient.actor_critic import ActorCritic
from submax.testing.rules.examples import some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")

PROBLEM = Problem(Slots((2, 3)))


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


def test_logged_probabilities_and_rewards_reach_the_actor_by_the_critic_alone(
    problem, training, seed
):
    policy, rng = ActorCritic(hidden=8, training=training), np.random.default_rng(seed)
    feedback = some_feedback(problem, 4, 12, seed)
    state = policy.update(policy.init(problem, 4, rng), feedback._replace(log_prob=None), rng)
    columns = policy.columns(state, rng)
    assert np.all(columns[..., :2] == 0)
    value = state.critic.values(feedback.context)
    # Standardized: the same order, also where two values are equal but for rounding.
    for higher, lower in permutations(range(value.shape[-1]), 2):
        apart = value[..., higher] - value[..., lower] > 1e-5 * np.abs(value).max()
        assert np.all(columns[..., 2 + higher][apart] > columns[..., 2 + lower][apart])


def test_it_learns_which_arm_suits_which_context(learned, earned, training):
    policy = ActorCritic(hidden=8, training=training)
    assert earned(policy, learned(policy)) > 0.7
