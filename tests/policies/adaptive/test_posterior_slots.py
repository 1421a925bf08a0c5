import itertools

import numpy as np
import pytest

from submax import Continuous, Feedback, Problem, Slots
from submax.models.regression.bayesian import Posterior, PriorStructure
from submax.models.regression.slot_belief import SlotMap
from submax.policies import PosteriorSlots

SIZES = (2, 3, 4)


def features_by_hand(slot_map, context, action):
    """One row of effects, written out one by one."""
    z = np.clip((context - slot_map.shift) * slot_map.scale, -10, 10)
    chosen = [np.eye(size)[one] for size, one in zip(slot_map.sizes, action, strict=True)]
    choices = np.concatenate(chosen)
    row = [np.ones(1), z, choices, np.outer(choices, z).ravel()]
    if slot_map.pairs:
        row += [np.outer(one, two).ravel() for one, two in itertools.combinations(chosen, 2)]
    return np.concatenate(row)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("width", [0, 2])
def test_the_effects_of_a_joint_action(pairs, width, seed):
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(30, width))
    action = rng.integers(SIZES, size=(30, 3))
    slot_map = SlotMap.of(SIZES, context, np.ones(30), 1000, pairs)
    rows = slot_map.rows(context, action).toarray()
    expected = [features_by_hand(slot_map, *one) for one in zip(context, action, strict=True)]
    np.testing.assert_allclose(rows, expected)
    assert len(slot_map.groups) == slot_map.width == rows.shape[1]
    # What is said slot by slot and pair by pair adds up to the product with the coefficients.
    coefficients = rng.normal(size=(1, slot_map.width))
    own = slot_map.choice_effects(coefficients, context)
    total = sum(effect[np.arange(30), 0, action[:, slot]] for slot, effect in enumerate(own))
    for (one, two), effect in slot_map.pair_effects(coefficients).items():
        total = total + effect[0, action[:, one], action[:, two]]
    shared = coefficients[0, : slot_map.first_choice]
    total = total + shared[0] + slot_map.standardized(context) @ shared[1:]
    np.testing.assert_allclose(total, rows @ coefficients[0])


def played(policy, width=0, rows=400, seed=0, noise=0.1):
    """A state after rows whose reward depends on choices, on a pair, and on the context."""
    rng = np.random.default_rng(seed)
    problem = Problem(Slots(SIZES), width, Continuous())
    context, action = rng.normal(size=(1, rows, width)), rng.integers(SIZES, size=(1, rows, 3))
    reward = (
        action[..., 2] * 0.2 + (action[..., 0] == action[..., 1]) + noise * rng.normal(size=rows)
    )
    if width:
        reward = reward + context[..., 0] * (action[..., 1] - 1)
    feedback = Feedback(
        context, action, reward, np.full((1, rows), -np.log(24)), np.ones((1, rows))
    )
    return policy.update(policy.init(problem, 1, rng), feedback, rng), problem


def test_it_finds_the_best_combination(seed):
    policy = PosteriorSlots(draws=6)
    state, problem = played(policy, seed=seed)
    chances = policy.probabilities(state, np.zeros((1, 1, 0)))[0, 0]
    best = problem.space.action(np.array([chances.argmax()]))[0]
    assert best[2] == 3
    assert best[0] == best[1]
    assert chances.max() > 0.4


def test_the_context_decides(seed):
    policy = PosteriorSlots(draws=6)
    state, _ = played(policy, width=1, rows=800, seed=seed)
    for number, wanted in ((3.0, 2), (-3.0, 0)):
        context = np.full((1, 50, 1), number)
        action, _ = policy.act(state, context, np.random.default_rng(seed))
        assert np.mean(action[0, :, 1] == wanted) > 0.8


def test_the_pool_has_the_moments_of_the_posterior(seed):
    policy = PosteriorSlots(draws=4000, width=1.0, pairs=False)
    state, _ = played(policy, rows=100, seed=seed, noise=1.0)
    belief = state.beliefs[0]
    design = PriorStructure.independent(belief.slot_map.groups, 1)
    posterior = Posterior.of(belief.sums, design, belief.prior, belief.centre)
    np.testing.assert_allclose(belief.coefficients, posterior.coefficients[0], atol=1e-9)
    asked = belief.slot_map.rows(np.zeros((24, 0)), np.array(list(np.ndindex(SIZES)))).toarray()
    drawn = (belief.pool - belief.coefficients) @ asked.T
    variance = posterior.variance(asked)[:, 0]
    # The relative error of a variance from n normal numbers is √(2 / n); 24 comparisons, 5 errors.
    assert np.abs(drawn.var(axis=0) / variance - 1).max() < 5 * np.sqrt(2 / 4000)
    assert np.abs(drawn.mean(axis=0) / np.sqrt(variance)).max() < 5 / np.sqrt(4000)


def test_no_joint_action_is_listed(seed):
    policy = PosteriorSlots(draws=4)
    problem = Problem(Slots((10,) * 12), 0)
    rng = np.random.default_rng(seed)
    state = policy.init(problem, 1, rng)
    action, log_prob = policy.act(state, np.zeros((1, 40, 0)), rng)
    np.testing.assert_allclose(log_prob, -12 * np.log(10))
    reward = (action[..., 0] == 3).astype(float)
    reward[0, :2] = [0, 1]
    feedback = Feedback(np.zeros((1, 40, 0)), action, reward, log_prob, np.ones((1, 40)))
    state = policy.update(state, feedback, rng)
    action, log_prob = policy.act(state, np.zeros((1, 40, 0)), rng)
    assert np.isfinite(log_prob).all()


def test_rewards_that_differ_by_rounding_teach_nothing():
    policy, rng = PosteriorSlots(draws=4), np.random.default_rng(0)
    problem = Problem(Slots((3, 3)), 0, Continuous())
    action, nowhere = rng.integers(3, size=(1, 40, 2)), np.zeros((1, 40, 0))
    reward = np.array([[0.3, 0.1 + 0.2] * 20])
    feedback = Feedback(nowhere, action, reward, None, np.ones((1, 40)))
    state = policy.update(policy.init(problem, 1, rng), feedback, rng)
    np.testing.assert_allclose(policy.probabilities(state, nowhere[:, :1]), 1 / 9)
