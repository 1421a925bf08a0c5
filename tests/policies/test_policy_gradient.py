"""Losses whose gradients are those of the expected reward, by enumeration of all actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from submax import Memory, Problem, Slots
from submax.models.memory import Buffer
from submax.models.nn.designs import Example
from submax.policies import (
    ActorCritic,
    DoublyRobustGradient,
    PolicyGradient,
)
from submax.research.rivals.designs import PreferenceDesign
from submax.research.rivals.policy_gradient import NearPairs
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
    columns, values = policy.columns(state, rng), state.critic.values(feedback.context)
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


# Preference optimization


@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_the_best_policy_is_the_reference_tilted_by_the_values(strength, seed):
    """At p ∝ q exp(v / β) the expected loss over all pairs has no gradient, and it is convex."""
    rng = np.random.default_rng(seed)
    design = PreferenceDesign((4,), 0, 4, strength)
    values, logged = rng.normal(size=4), rng.dirichlet(np.full(4, 5.0))

    # Every pair of actions a and b, once for each order of preference.
    a, b, first = (part.ravel() for part in np.indices((4, 4, 2)))
    sign = 2.0 * first - 1
    chance = logged[a] * logged[b] * expit(sign * (values[a] - values[b]))
    pairs = jnp.asarray(np.stack([b, np.log(logged[a] / logged[b]), sign], axis=1), jnp.float32)

    def expected_loss(logits):
        def pair_loss(action, columns):
            example = Example(jnp.zeros(0), action, columns)
            return design.pair_loss(logits, logits, example, columns[:1])

        return jnp.asarray(chance, jnp.float32) @ jax.vmap(pair_loss)(
            jnp.asarray(a)[:, None], pairs
        )

    best = jnp.asarray(np.log(logged) + values / strength, dtype=jnp.float32)
    gradient = jax.jit(jax.grad(expected_loss))
    assert np.abs(gradient(best)).max() < 1e-5
    elsewhere = best + jnp.asarray([0.5, 0.0, 0.0, 0.0])
    assert np.abs(gradient(elsewhere)).max() > 1e-4


def test_partners_are_the_nearest_with_another_reward(problem, seed):
    """With very many candidates all rows are among them, so that the nearest of all is found."""
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, 3, 9, seed)
    feedback.weight[1, 4:] = 0.0
    feedback.reward[2] = 1.0
    buffer = Buffer.empty(problem, 3).add(feedback, Memory(), rng)
    pairs = NearPairs.drawn(buffer, buffer.context.astype(np.float32), 400, rng)
    for replica, row in np.ndindex(3, 9):
        rows = range(buffer.filled[replica])
        mine, context = buffer.reward[replica], buffer.context[replica]
        others = [other for other in rows if mine[other] != mine[row]]
        if row not in rows or not others:
            assert pairs.sign[replica, row] == 0
            continue
        apart = [np.sum((context[other] - context[row]) ** 2) for other in others]
        assert pairs.partner[replica, row] == others[int(np.argmin(apart))]
        assert pairs.sign[replica, row] == (1 if mine[row] > 0 else -1)
