"""The Softmax network, and networks as they are by default, with steps that are fitted."""

import warnings

import numpy as np
import pytest

from submax.core.errors import DivergedWarning
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Counts
from submax.core.spaces import Arms
from submax.estimators.network import CVAE, Softmax
from submax.models.memory import NUMBERS_PER_PART, Memory, importance_values
from submax.models.networks.choices import INJECTION_FORMS
from submax.models.training_settings import Training

pytestmark = pytest.mark.xdist_group("Softmax")

PROBLEM = Problem(Arms(3), context_width=1)
REPLICAS = 2
ESTIMATOR = Softmax(hidden=16, training=Training(steps=400, batch=128, learning_rate=0.01))

# p(a | c, r) for a context of −1 and of 1, and both levels.
TRUTH = np.array([[[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]], [[0.6, 0.3, 0.1], [0.1, 0.7, 0.2]]])


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
    found = importance_values(ESTIMATOR, fitted, NUMBERS_PER_PART // 7)
    whole = ESTIMATOR.belief(fitted, np.zeros((REPLICAS, 1, 1))).values()
    np.testing.assert_allclose(found, whole, rtol=1e-6)


COUNTS = Problem(Arms(2), scale=Counts())


def counted(rewards, rng):
    """Arm 1 pays 2 and more, arm 0 pays less."""
    reward = np.array(rewards, dtype=float)[None]
    action = (reward >= 2).astype(np.int64)[..., None]
    return Feedback(np.zeros((*reward.shape, 0)), action, reward, None, np.ones(reward.shape))


@pytest.mark.parametrize(
    "injection",
    [
        pytest.param(form, marks=() if form == "modulation" else pytest.mark.soak)
        for form in INJECTION_FORMS
    ],
)
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

    def asked(params):
        encoding = params.reward_encoding._replace(levels=rewards)
        network = first.written(COUNTS, params.parameters, encoding, params.latent)
        at_rewards = params._replace(network=network, reward_encoding=encoding)
        return first.belief(at_rewards, nothing).prob_of_all()

    before, found = asked(params), asked(after)
    np.testing.assert_allclose(found, before, atol=1e-5)
    assert before[0, 0, 0, 0] > 0.9
    assert before[0, 0, 3, 1] > 0.9


LARGE_FEATURES = Problem(Arms(2), context_width=4)
TRAINING = Training(learning_rate=0.01, batch=64)


def contexts(rows, rng):
    """A feature of size 1e6, a constant one, a heavy-tailed one, and a plain one."""
    shape = (REPLICAS, rows)
    large = 1e6 * rng.normal(size=shape) + 1e7
    heavy = rng.normal(size=shape) * np.where(rng.random(shape) < 0.01, 1e4, 1.0)
    return np.stack([large, np.full(shape, 7.0), heavy, rng.normal(size=shape)], axis=-1)


def rewarded(context, action):
    """Which arm pays depends on the feature of size 1e6."""
    return (action == (context[..., 0] > 1e7)).astype(float)


def some_feedback(rows, seed):
    rng = np.random.default_rng((seed, 9))
    context = contexts(rows, rng)
    action = rng.integers(2, size=(REPLICAS, rows))
    reward = rewarded(context, action)
    known = np.full(reward.shape, -np.log(2))
    return Feedback(context, action[..., None], reward, known, np.ones(reward.shape))


def test_contexts_far_out_and_unscaled_do_not_make_the_loss_of_a_cvae_infinite(seed):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(200, seed)
    estimator = CVAE(hidden=16, latent=2, training=Training(steps=20, batch=64))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DivergedWarning)
        estimator.fit(estimator.init(LARGE_FEATURES, REPLICAS, rng), feedback, rng)


@pytest.mark.parametrize("memory", [Memory(), Memory(window=150)], ids=repr)
def test_a_memory_that_forgets_begins_anew(memory, seed):
    """Rows change their place in it, so that rows trained on before may be held out now."""
    feedback = some_feedback(200, seed)
    estimator = Softmax(hidden=16, training=TRAINING, memory=memory)
    rng = np.random.default_rng(seed)
    params = estimator.init(LARGE_FEATURES, REPLICAS, rng)
    params = estimator.fit(params, feedback.rows(slice(0, 180)), rng)
    networks = [
        estimator.fit(
            one, feedback.rows(slice(180, 200)), np.random.default_rng(seed)
        ).network.head_weight
        for one in (params, params._replace(parameters=0.5 * params.parameters))
    ]
    assert np.array_equal(*networks) == memory.forgets
