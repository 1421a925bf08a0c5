"""Estimators and value networks as they are by default, with steps that are fitted."""

import warnings

import numpy as np
import pytest

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.memory import Memory
from submax.core.memory.training import Training
from submax.core.numerics.divergence import DivergedWarning
from submax.core.spaces.arms import Arms
from submax.estimators.cvae import CVAE
from submax.estimators.softmax import Softmax
from submax.policies.neural.neural_epsilon_greedy import NeuralEpsilonGreedy
from submax.policies.neural.neural_ucb import NeuralUCB
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
from submax.strategies.submax import SubMax
from submax.testing.rules.examples import rows_of

pytestmark = pytest.mark.xdist_group("Softmax")

PROBLEM = Problem(Arms(2), context_width=4)
TRAINING = Training(learning_rate=0.01, batch=64)
REPLICAS = 2
POLICIES = [
    RewardConditioned(Softmax(hidden=16, training=TRAINING), SubMax()),
    RewardConditioned(CVAE(hidden=16, latent=2, draws=3, training=TRAINING), SubMax()),
    NeuralEpsilonGreedy(0.0, hidden=16, dropout=0.0, training=TRAINING),
    NeuralUCB(hidden=16, training=TRAINING),
]


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


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)
def test_features_of_any_size_are_learned_from_and_nothing_diverges(policy, seed):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(400, seed)
    state = policy.init(PROBLEM, REPLICAS, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DivergedWarning)
        for first in range(0, 400, 200):
            state = policy.update(state, rows_of(feedback, slice(first, first + 200)), rng)
    context = contexts(500, rng)
    action = policy.act(state, context, rng).action[..., 0]
    # Choice at random earns a half.
    assert rewarded(context, action).mean() > 0.8


def test_contexts_far_out_and_unscaled_do_not_make_the_loss_of_a_cvae_infinite(seed):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(200, seed)
    estimator = CVAE(hidden=16, latent=2, training=Training(steps=20, batch=64))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DivergedWarning)
        estimator.fit(estimator.init(PROBLEM, REPLICAS, rng), feedback, rng)


def test_the_same_seed_gives_the_same_network(seed):
    feedback = some_feedback(300, seed)
    estimator = POLICIES[0].estimator

    def learned():
        rng = np.random.default_rng(seed)
        params = estimator.init(PROBLEM, REPLICAS, rng)
        for first in range(0, 300, 100):
            params = estimator.fit(params, rows_of(feedback, slice(first, first + 100)), rng)
        return params

    one, other = learned(), learned()
    for mine, yours in zip(one.network, other.network, strict=True):
        assert np.array_equal(mine, yours)


def test_single_decisions_see_the_same_scaled_contexts(seed):
    rng = np.random.default_rng(seed)
    estimator = POLICIES[0].estimator
    feedback = some_feedback(200, seed)
    one = Feedback(*(None if part is None else part[:1] for part in feedback))
    params = estimator.fit(estimator.init(PROBLEM, 1, rng), one, rng)
    context = contexts(5, rng)[:1]
    together = estimator.belief(params, context).prob_of_all()
    for row in range(5):
        alone = estimator.belief(params, context[:, row : row + 1]).prob_of_all()
        np.testing.assert_allclose(alone[:, 0], together[:, row], rtol=1e-4)


def test_a_memory_that_forgets_begins_anew(seed):
    """Rows change their place in it, so that rows trained on before may be held out now."""
    rng = np.random.default_rng(seed)
    feedback = some_feedback(200, seed)
    estimator = Softmax(hidden=16, training=TRAINING, memory=Memory(window=150))
    params = estimator.init(PROBLEM, REPLICAS, rng)
    params = estimator.fit(params, rows_of(feedback, slice(0, 180)), rng)
    assert estimator._start(params, params.reward_encoding) is None
    whole = POLICIES[0].estimator
    assert whole._start(params, params.reward_encoding) is params.parameters
