import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.rewards.counts import Counts
from submax.core.spaces.arms import Arms
from submax.estimators.importance_values import NUMBERS_PER_PART, importance_values
from submax.estimators.softmax import Softmax
from submax.models.networks.slot_network import INJECTION_FORMS
from submax.testing.rules.examples import some_contexts

pytestmark = pytest.mark.xdist_group("Softmax")

PROBLEM = Problem(Arms(3), context_width=1)
REPLICAS = 2
ESTIMATOR = Softmax(hidden=16, training=Training(steps=400, batch=128, learning_rate=0.01))

# p(a | c, r) for a context of −1 and of 1, and both levels.
TRUTH = np.array([[[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]], [[0.6, 0.3, 0.1], [0.1, 0.7, 0.2]]])


def levels_of(estimator, params):
    nowhere = np.zeros((len(params.level_share), 1, params.problem.context_width))
    return estimator.belief(params, nowhere).levels()


def known_feedback(rows, seed):
    """Actions drawn from the known probabilities."""
    rng = np.random.default_rng((seed, 4))
    shape = (REPLICAS, rows)
    side, level = rng.integers(2, size=shape), rng.integers(2, size=shape)
    uniform = rng.random(shape)
    action = (uniform[..., None] > TRUTH[side, level].cumsum(axis=-1)[..., :2]).sum(axis=-1)
    context = (2.0 * side - 1)[..., None]
    log_prob = np.log(rng.uniform(0.2, 1.0, size=shape))
    return Feedback(context, action[..., None], level.astype(float), log_prob, np.ones(shape))


@pytest.fixture(scope="module")
def feedback(seed):
    return known_feedback(2000, seed)


@pytest.fixture(scope="module")
def fitted(feedback, seed):
    rng = np.random.default_rng(seed)
    return ESTIMATOR.fit(ESTIMATOR.init(PROBLEM, REPLICAS, rng), feedback, rng)


def test_it_learns_known_probabilities(fitted):
    context = np.broadcast_to(np.array([-1.0, 1.0])[:, None], (REPLICAS, 2, 1))
    found = ESTIMATOR.belief(fitted, context).prob_of_all()
    # 500 rows in each of four cells: a standard error of 0.02, and as much from the last steps.
    # Uniform probabilities are 0.47 off, those of the other level or context 0.5.
    assert np.abs(found - TRUTH).max() < 0.2


def test_rows_that_are_too_many_at_once_are_valued_in_parts(fitted):
    def prob(context, action):
        return ESTIMATOR.belief(fitted, context).prob(action)

    found = importance_values(fitted.buffer, PROBLEM, prob, 2, NUMBERS_PER_PART // 7)
    whole = ESTIMATOR.belief(fitted, np.zeros((REPLICAS, 1, 1))).values()
    np.testing.assert_allclose(found, whole, rtol=1e-6)


COUNTS = Problem(Arms(2), scale=Counts())


def counted(rewards, rng):
    """Arm 1 pays 2 and more, arm 0 pays less."""
    reward = np.array(rewards, dtype=float)[None]
    action = (reward >= 2).astype(np.int64)[..., None]
    return Feedback(np.zeros((*reward.shape, 0)), action, reward, None, np.ones(reward.shape))


@pytest.mark.parametrize("injection", INJECTION_FORMS)
def test_going_on_with_other_bin_edges_begins_where_training_ended(injection, seed):
    rng = np.random.default_rng(seed)
    training = Training(steps=300, batch=64, learning_rate=0.01, continued=True)
    first = Softmax(hidden=16, injection=injection, training=training)
    params = first.fit(first.init(COUNTS, 1, rng), counted(rng.integers(4, size=400), rng), rng)
    slight = Training(steps=1, batch=1, learning_rate=1e-9, continued=True)
    then = Softmax(hidden=16, injection=injection, training=slight)
    after = then.fit(params, counted([4.0], rng), rng)
    assert params.reward_encoding.bin_edges.tolist() == [[0, 0, 1, 2, 3]]
    assert after.reward_encoding.bin_edges.tolist() == [[0, 1, 2, 3, 4]]
    rewards, nothing = np.array([[0.0, 1.0, 2.0, 3.0]]), np.zeros((1, 1, 0))
    before, found = (
        first.belief(first.at_levels(one, rewards), nothing).prob_of_all()
        for one in (params, after)
    )
    np.testing.assert_allclose(found, before, atol=1e-5)
    assert before[0, 0, 0, 0] > 0.9
    assert before[0, 0, 3, 1] > 0.9


def test_what_was_asked_for_other_rewards_can_learn_on(fitted, feedback, seed):
    asked = ESTIMATOR.at_levels(fitted, np.tile([0.0, 0.5, 1.0], (REPLICAS, 1)))
    assert levels_of(ESTIMATOR, asked).shape == (REPLICAS, 3)
    after = ESTIMATOR.fit(asked, feedback, np.random.default_rng(seed))
    assert levels_of(ESTIMATOR, after).tolist() == [[0.0, 1.0]] * REPLICAS


def test_a_replica_that_heard_nothing_stays_uniform_at_other_rewards(feedback, seed):
    rng = np.random.default_rng(seed)
    weight = feedback.weight.copy()
    weight[0] = 0.0
    heard = feedback._replace(weight=weight)
    params = ESTIMATOR.fit(ESTIMATOR.init(PROBLEM, REPLICAS, rng), heard, rng)
    asked = ESTIMATOR.at_levels(params, np.tile([0.2, 0.7], (REPLICAS, 1)))
    context = some_contexts(PROBLEM, REPLICAS, 3, seed)
    found = ESTIMATOR.belief(asked, context).prob_of_all()
    assert np.allclose(found[0], 1 / 3)
    assert not np.allclose(found[1], 1 / 3, atol=0.01)


@pytest.mark.parametrize("levels", [[[np.nan, 1.0]] * 2, [[1.0, 0.0]] * 2, [[0.0, 1.0]], [[]] * 2])
def test_rewards_that_cannot_be_asked_for_are_refused(levels, fitted):
    with raises_code("invalid-input"):
        ESTIMATOR.at_levels(fitted, np.array(levels))
