import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.rewards.discrete import Discrete
from submax.core.spaces.arms import Arms
from submax.estimators.counting import Counting
from submax.policies.reward_conditioned.bayes_reparameterized import BayesReparameterized
from submax.strategies.optimistic import Optimistic
from submax.testing.rules.examples import some_contexts, some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")


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
    for replica, row in np.ndindex(4, 5):
        logits = [
            value(state.rewards.network, replica, context[replica, row], arm) for arm in range(3)
        ]
        paid = 1 / (1 + np.exp(-np.array(logits, dtype=float)))
        joint = np.stack([1 - paid, paid]) * counted[replica, row]
        expected = joint / joint.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(table.probabilities[replica, row], expected, rtol=1e-4)
        np.testing.assert_allclose(table.prior[replica, row], joint.sum(axis=1), rtol=1e-4)


def test_submax_is_the_behaviour_times_the_positive_advantage(policy, state, problem, seed):
    """π(a) ∝ p(a | c) max(v(a, c) − Σ_b p(b | c) v(b, c), 0); see docs/explanation/theory.md."""
    context = some_contexts(problem, 4, 30, seed)
    behaviour = policy.estimator.belief(state.behaviour, context).prob_of_all()[:, :, 0]
    values = state.rewards.values(context)
    mean = (behaviour * values).sum(axis=-1, keepdims=True)
    mass = behaviour * np.maximum(values - mean, 0)
    expected = mass / mass.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(policy.probabilities(state, context), expected, atol=1e-9)


def test_the_behaviour_is_that_of_the_logged_actions(policy, state):
    counts = np.stack(
        [(state.rewards.buffer.action[..., 0] == arm).sum(axis=1) for arm in range(3)], axis=1
    )
    found = policy.estimator.belief(state.behaviour, np.zeros((4, 1, 2))).prob_of_all()[:, 0, 0]
    expected = (counts + 1) / (counts + 1).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected)


def test_several_levels_have_the_mean_that_the_network_predicts(seed):
    problem = Problem(Arms(4), scale=Discrete((-1.0, 0.0, 3.0)))
    policy = BayesReparameterized(
        Optimistic(), Counting(), hidden=4, training=Training(steps=6, batch=8, learning_rate=0.05)
    )
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, 4, 40, seed)
    state = policy.update(policy.init(problem, 4, rng), feedback, rng)
    context = np.zeros((4, 1, 0))
    table = policy.table(state, context)
    behaviour = policy.estimator.belief(state.behaviour, context).prob_of_all()[:, :, 0]
    joint = table.probabilities * table.prior[..., None] / behaviour[:, :, None]
    mean = (joint * table.levels[..., None]).sum(axis=2)
    expected = -1 + 4 * state.rewards.values(context)
    np.testing.assert_allclose(mean, expected, atol=0.02)
