import numpy as np
import pytest

from submax.core.problem import Feedback, Problem
from submax.core.rewards import Continuous
from submax.core.spaces import Box
from submax.estimators.network import CVAE
from submax.models.training_settings import Training
from submax.policies.reward_conditioned import RewardConditioned
from submax.strategies.weighted import SubMax
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

pytestmark = pytest.mark.xdist_group("CVAE")

# From −2 to 6: 0.8 of the way is at 4.4, 0.2 of it at −0.4.
BOX, MIXED = Box((-2.0,), (6.0,)), Box((-2.0,), (6.0,), (2,))
GOOD, BAD = 4.4, -0.4
CONTINUOUS = Problem(BOX, scale=Continuous(quantiles=(0.1, 0.9), asked=3))
PROBLEMS = [CONTINUOUS, Problem(MIXED)]
TRAINING = Training(steps=400, batch=128, learning_rate=0.01)
ESTIMATOR = CVAE(hidden=16, latent=2, draws=32, components=3, training=TRAINING)
REPLICAS, BINS, NODES = 2, 16, 20
CONTEXT = np.zeros((REPLICAS, 1, 0))
both = pytest.mark.parametrize("fitted", PROBLEMS, ids=["box", "mixed"], indirect=True)


def telling_feedback(problem, rows, seed):
    """Uniform actions, paid the more the nearer the number is to 4.4; of choices only the second.

    Where rewards are 0 or 1, they are 1 with the same numbers as chances.
    """
    rng = np.random.default_rng((seed, 5))
    action = problem.space.uniform((REPLICAS, rows), rng)
    reward = np.exp(-((action[..., -1] - GOOD) ** 2) / 2)
    if problem.space.choices:
        reward *= 0.1 + 0.9 * action[..., 0]
    if not problem.scale.moves:
        reward = (rng.random(reward.shape) < reward).astype(np.float64)
    log_prob = np.full(reward.shape, -problem.space.log_measure)
    context = np.zeros((REPLICAS, rows, 0))
    return Feedback(context, action, reward, log_prob, np.ones(reward.shape))


@pytest.fixture(scope="module")
def beliefs(seed):
    """What was learned of each problem, once."""
    learned = {}

    def belief(problem):
        if problem not in learned:
            rng = np.random.default_rng(seed)
            policy = RewardConditioned(ESTIMATOR, SubMax())
            state = policy.init(problem, REPLICAS, rng)
            learned[problem] = policy.update(state, telling_feedback(problem, 1500, seed), rng)
        return learned[problem]

    return belief


@pytest.fixture
def fitted(request, beliefs):
    return beliefs(request.param)


def nodes(space):
    """Actions for every choice and node, ``[K · B · P, S]``, the weight and the cell of each."""
    place, weight = np.polynomial.legendre.leggauss(NODES)
    width = (space.high[0] - space.low[0]) / BINS
    first = space.low[0] + width * np.arange(BINS)[:, None]
    numbers = (first + width * (place + 1) / 2).ravel()
    weights = np.tile(weight * width / 2, BINS)
    cell = np.repeat(np.arange(BINS), NODES)
    if not space.choices:
        return numbers[:, None], weights, cell
    (count,) = space.choices
    chosen = np.repeat(np.arange(count), len(numbers))
    action = np.stack([chosen, np.tile(numbers, count)], axis=1)
    return action, np.tile(weights, count), np.tile(cell, count) + BINS * chosen


def masses(space, density):
    """Integrate densities at the nodes over every cell: ``[..., K · B]``."""
    _, weights, cell = nodes(space)
    parts = [(density * weights)[..., cell == one].sum(axis=-1) for one in range(cell.max() + 1)]
    return np.stack(parts, axis=-1)


def cells(space, action):
    unit = space.scaled(action)[..., -1]
    place = np.minimum((unit * BINS).astype(np.int64), BINS - 1)
    return place + BINS * action[..., 0].astype(np.int64) if space.choices else place


def prob_at_nodes(params, space):
    return ESTIMATOR.belief(params, CONTEXT).prob(nodes(space)[0][None, None])


def near(space, number):
    action = np.array([[1.0, number]] if space.choices else [[number]])
    return action[None, None]


@both
def test_high_rewards_are_where_they_were_observed(fitted):
    space = fitted.problem.space
    good, bad = (
        ESTIMATOR.belief(fitted.params, CONTEXT).prob(near(space, number))[..., 0]
        for number in (GOOD, BAD)
    )
    assert np.all(good[..., -1] > 2 * bad[..., -1])
    assert np.all(good[..., 0] < good[..., -1])
    if space.choices:
        other = ESTIMATOR.belief(fitted.params, CONTEXT).prob(np.array([[[[0.0, GOOD]]]]))[..., 0]
        assert np.all(good[..., -1] > 2 * other[..., -1])


@both
def test_decisions_agree_with_their_estimated_density(fitted, seed):
    space = fitted.problem.space
    policy, rng = RewardConditioned(ESTIMATOR, SubMax()), np.random.default_rng(seed)
    decision = policy.act(fitted, np.zeros((REPLICAS, 5000, 0)), rng)
    assert decision.log_prob is None
    assert space.contains(decision.action)
    action = nodes(space)[0]
    every = np.broadcast_to(action, (REPLICAS, *action.shape))
    density = policy.density(fitted, np.zeros((REPLICAS, len(action), 0)), every)
    assert density.known.all()
    found = masses(space, np.exp(density.log_prob))
    # The constant is an estimate, and a bin in which the mixture is clipped has a kink.
    assert np.all(np.abs(found.sum(axis=-1) - 1) < 7 * density.error[:, 0] + 1e-3)
    share = found / found.sum(axis=-1, keepdims=True)
    # A bin with the kink alone may have no node where the mixture is positive.
    share = (share + 1e-6) / (share + 1e-6).sum(axis=-1, keepdims=True)
    for replica in range(REPLICAS):
        assert goodness_of_fit(cells(space, decision.action[replica]), share[replica]) > (
            SMALLEST_P_VALUE
        )
    assert np.median(np.abs(decision.action[..., -1] - GOOD)) < 1.5


@both
def test_before_the_first_feedback_it_is_the_same_at_all_levels(fitted, seed):
    space = fitted.problem.space
    policy, rng = RewardConditioned(ESTIMATOR, SubMax()), np.random.default_rng(seed)
    state = policy.init(fitted.problem, REPLICAS, rng)
    found = prob_at_nodes(state.params, space)
    np.testing.assert_allclose(masses(space, found).sum(axis=-1), 1, rtol=1e-6)
    assert np.array_equal(found[:, :, 0], found[:, :, -1])
    context = np.zeros((REPLICAS, 2000, 0))
    action = policy.act(state, context, rng).action
    uniform = np.full(BINS * max(1, sum(space.choices)), 1.0)
    assert goodness_of_fit(cells(space, action), uniform / uniform.sum()) > SMALLEST_P_VALUE
    assert np.allclose(policy.log_prob(state, context, action), -space.log_measure)


def test_values_are_the_direct_sums(beliefs, seed):
    feedback = telling_feedback(CONTINUOUS, 1500, seed)
    belief = ESTIMATOR.belief(beliefs(CONTINUOUS).params, feedback.context)
    policy = belief.prob(feedback.action[:, :, None])[..., 0]
    ratio = feedback.reward / np.exp(feedback.log_prob)
    expected = np.einsum("rn,rnl->rl", ratio, policy) / 1500
    np.testing.assert_allclose(belief.values(), expected, rtol=1e-6)
