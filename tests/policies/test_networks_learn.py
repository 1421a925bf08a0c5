"""Policies that train networks: uniform before the first feedback, and better afterwards."""

import numpy as np
import pytest

from submax.estimators import Softmax
from submax.policies import (
    ActorCritic,
    AdvantageConditioned,
    BayesReparameterized,
    DoublyRobustGradient,
    DropoutThompson,
    GenerativePolicyGradient,
    NeuralEpsilonGreedy,
    NeuralThompson,
    NeuralUCB,
    PolicyGradient,
    PreferenceOptimization,
    SampleAverageSampling,
    SampleAverageUCB,
    VarianceNetworkUCB,
)
from submax.strategies import SubMax, Tilted
from submax.testing.problems import some_contexts

pytestmark = pytest.mark.xdist_group("ValueBelief")

KINDS = {
    ActorCritic: {},
    AdvantageConditioned: {"estimator": Softmax, "strategy": Tilted(0.2)},
    BayesReparameterized: {"estimator": Softmax, "strategy": SubMax()},
    DoublyRobustGradient: {},
    DropoutThompson: {"dropout": 0.3, "masks": 40},
    GenerativePolicyGradient: {"latent": 2, "draws": 3},
    NeuralEpsilonGreedy: {"epsilon": 0.0, "dropout": 0.0},
    NeuralThompson: {},
    NeuralUCB: {},
    PolicyGradient: {},
    PreferenceOptimization: {"strength": 0.3},
    SampleAverageSampling: {},
    SampleAverageUCB: {},
    VarianceNetworkUCB: {},
}
LEAST_EARNED = {DropoutThompson: 0.5}


def made(kind, training):
    parts = dict(KINDS[kind])
    if "estimator" in parts:
        parts["estimator"] = parts["estimator"](hidden=8, training=training)
    return kind(**parts, hidden=8, training=training)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_which_arm_suits_which_context(kind, learned, earned, training):
    policy = made(kind, training)
    # Uniform choices earn a third.
    assert earned(policy, learned(policy)) > LEAST_EARNED.get(kind, 0.7)


@pytest.mark.parametrize("kind", KINDS)
def test_before_the_first_feedback_it_is_uniform(kind, problem, training, seed):
    policy = made(kind, training)
    state = policy.init(problem, 4, np.random.default_rng(seed))
    found = policy.probabilities(state, some_contexts(problem, 4, 6, seed))
    assert np.allclose(found, 1 / 3)
