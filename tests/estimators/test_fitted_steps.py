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


def test_one_decision_sees_the_same_scaled_context_as_among_many(seed):
    rng = np.random.default_rng(seed)
    estimator = POLICIES[0].estimator
    params = estimator.fit(estimator.init(PROBLEM, REPLICAS, rng), some_feedback(200, seed), rng)
    context = contexts(5, rng)
    together = estimator.belief(params, context).prob_of_all()
    for row in range(5):
        alone = estimator.belief(params, context[:, row : row + 1]).prob_of_all()
        np.testing.assert_allclose(alone[:, 0], together[:, row], rtol=1e-4)


@pytest.mark.parametrize("memory", [Memory(), Memory(window=150)], ids=repr)
def test_a_memory_that_forgets_begins_anew(memory, seed):
    """Rows change their place in it, so that rows trained on before may be held out now."""
    feedback = some_feedback(200, seed)
    estimator = Softmax(hidden=16, training=TRAINING, memory=memory)
    rng = np.random.default_rng(seed)
    params = estimator.init(PROBLEM, REPLICAS, rng)
    params = estimator.fit(params, rows_of(feedback, slice(0, 180)), rng)
    other = {name: 0.5 * value for name, value in params.parameters.items()}
    networks = [
        estimator.fit(
            one, rows_of(feedback, slice(180, 200)), np.random.default_rng(seed)
        ).network.head_weight
        for one in (params, params._replace(parameters=other))
    ]
    assert np.array_equal(*networks) == memory.forgets
