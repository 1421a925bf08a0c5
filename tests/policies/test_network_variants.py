"""Policies conditioned on advantages, and by Bayes’ rule."""

import numpy as np
import pytest

from submax import Arms, Continuous, Problem, Training
from submax.core.policy import restricted_state
from submax.estimators import Counting, Softmax
from submax.policies import AdvantageConditioned, BayesReparameterized, RewardConditioned
from submax.strategies import Tilted
from submax.testing.problems import some_contexts, some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")

SCALE = Continuous(low=-1.0, high=1.0, quantiles=(0.0, 1.0))
BRIEF = Training(steps=6, batch=8, learning_rate=0.05)


def test_without_a_context_it_is_conditioned_on_the_reward(seed):
    """V is a constant then, and a constant that is subtracted from all rewards changes nothing."""
    rng = np.random.default_rng(seed)
    plain = RewardConditioned(Counting(), Tilted(0.3), levels=4)
    policy = AdvantageConditioned(Counting(), Tilted(0.3), levels=4, hidden=4, training=BRIEF)
    problem = Problem(Arms(5), scale=SCALE)
    feedback = some_feedback(problem, 4, 60, seed)
    # The network's scale is from 0 to 1, on which advantages are half as large.
    feedback = feedback._replace(reward=rng.uniform(-0.5, 0.5, size=feedback.reward.shape))
    expected = plain.update(plain.init(problem, 4, rng), feedback, rng)
    found = policy.update(policy.init(problem, 4, rng), feedback, rng)
    context = np.zeros((4, 1, 0))
    np.testing.assert_allclose(
        policy.probabilities(found, context), plain.probabilities(expected, context)
    )


def test_advantages_are_rewards_less_the_value_of_the_context(problem, value, seed):
    policy = AdvantageConditioned(
        Softmax(hidden=4, training=BRIEF), levels=3, hidden=4, training=BRIEF
    )
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, 4, 10, seed)
    state = policy.update(policy.init(problem, 4, rng), feedback, rng)
    stored = state.conditioned.params.buffer
    for replica, row in np.ndindex(4, 10):
        logit = value(state.baseline.network, replica, feedback.context[replica, row], 0)
        expected = feedback.reward[replica, row] - 1 / (1 + np.exp(-logit))
        assert stored.reward[replica, row] == pytest.approx(expected, abs=1e-5)


@pytest.fixture(scope="module")
def policy(training):
    return BayesReparameterized(estimator=Counting(), hidden=8, training=training)


@pytest.fixture(scope="module")
def state(policy, learned):
    return learned(policy)


def test_conditioned_probabilities_follow_by_bayes_rule(policy, state, problem, value, seed):
    """Recompute p(r | a, c) p(a | c), normalized over actions, one action at a time."""
    context = some_contexts(problem, 4, 5, seed)
    table = policy.table(state, context)
    counted = policy.estimator.belief(state.behaviour, context).prob_of_all()[:, :, 0]
    action = state.rewards.buffer.action[..., 0]
    times = np.stack([(action == arm).sum(axis=1) for arm in range(3)], axis=1)
    logged = policy.estimator.smoothing + times
    np.testing.assert_allclose(counted[:, 0], logged / logged.sum(axis=1, keepdims=True))
    for replica, row in np.ndindex(4, 5):
        logits = [
            value(state.rewards.network, replica, context[replica, row], arm) for arm in range(3)
        ]
        paid = 1 / (1 + np.exp(-np.array(logits, dtype=float)))
        joint = np.stack([1 - paid, paid]) * counted[replica, row]
        expected = joint / joint.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(table.probabilities[replica, row], expected, rtol=1e-4)
        np.testing.assert_allclose(table.prior[replica, row], joint.sum(axis=1), rtol=1e-4)
    among = policy.table(restricted_state(policy, state, ((0, 2),)), context).probabilities
    kept = table.probabilities[..., [0, 2]]
    np.testing.assert_allclose(among, kept / kept.sum(axis=-1, keepdims=True), rtol=1e-6)
