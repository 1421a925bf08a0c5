import math

import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.policies.classic.gradient import Gradient
from submax.testing.rules.examples import some_feedback


def slow(batches, replica, arms, step):
    preferences, rewards = [0.0] * arms, []
    for feedback in batches:
        total = sum(map(math.exp, preferences))
        policy = [math.exp(preference) / total for preference in preferences]
        rewards += feedback.reward[replica].tolist()
        baseline = sum(rewards) / len(rewards)
        for row in range(feedback.reward.shape[1]):
            advantage = feedback.reward[replica, row] - baseline
            for arm in range(arms):
                taken = arm == feedback.action[replica, row, 0]
                preferences[arm] += step * advantage * (taken - policy[arm])
    total = sum(map(math.exp, preferences))
    return [math.exp(preference) / total for preference in preferences]


@pytest.mark.parametrize("step", [0.01, 0.1, 1.0])
def test_it_follows_the_gradient_batch_by_batch(step, seed):
    problem, policy = Problem(Arms(3)), Gradient(step)
    rng = np.random.default_rng(seed)
    batches = [some_feedback(problem, 4, rows, seed + rows) for rows in (1, 5, 2, 8)]
    state = policy.init(problem, 4, rng)
    for feedback in batches:
        state = policy.update(state, feedback, rng)
    found = policy.probabilities(state, np.zeros((4, 1, 0)))
    expected = [slow(batches, replica, 3, step) for replica in range(4)]
    assert np.allclose(found[:, 0], expected)


def test_a_huge_step_does_not_overflow(seed):
    problem, policy = Problem(Arms(3)), Gradient(1e6)
    rng = np.random.default_rng(seed)
    state = policy.init(problem, 2, rng)
    for step in range(5):
        state = policy.update(state, some_feedback(problem, 2, 10, seed + step), rng)
    found = policy.probabilities(state, np.zeros((2, 1, 0)))
    assert np.allclose(found.sum(axis=-1), 1)


@pytest.mark.parametrize("step", [0, -0.1, float("nan"), float("inf"), True, "0.1", None])
def test_a_bad_step_is_refused(step):
    with raises_code("invalid-input", "step"):
        Gradient(step)
