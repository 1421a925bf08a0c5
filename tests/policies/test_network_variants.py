"""A policy conditioned on the reward by Bayes’ rule."""

import numpy as np
import pytest

from submax.estimators import Counting
from submax.policies import BayesReparameterized
from submax.testing.problems import some_contexts

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
    among = policy.table(policy.restricted(state, ((0, 2),)), context).probabilities
    kept = table.probabilities[..., [0, 2]]
    np.testing.assert_allclose(among, kept / kept.sum(axis=-1, keepdims=True), rtol=1e-6)
