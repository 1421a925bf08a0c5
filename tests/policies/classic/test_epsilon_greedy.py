import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.policies.classic.epsilon_greedy import EpsilonGreedy
from submax.testing.rules.examples import some_feedback


def slow(feedback, replica, arms, epsilon):
    pulls, rewards = [0.0] * arms, [0.0] * arms
    for row in range(feedback.reward.shape[1]):
        arm = int(feedback.action[replica, row, 0])
        pulls[arm] += 1
        rewards[arm] += feedback.reward[replica, row]
    means = [r / n if n else 0.0 for r, n in zip(rewards, pulls, strict=True)]
    best = [arm for arm in range(arms) if means[arm] == max(means)]
    return [epsilon / arms + (arm in best) * (1 - epsilon) / len(best) for arm in range(arms)]


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("rows", [0, 2, 6, 40])
def test_probabilities_are_those_of_the_definition(epsilon, rows, seed):
    problem, policy = Problem(Arms(4)), EpsilonGreedy(epsilon)
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, 20, rows, seed)
    state = policy.update(policy.init(problem, 20, rng), feedback, rng)
    found = policy.probabilities(state, np.zeros((20, 1, 0)))
    expected = [slow(feedback, replica, 4, epsilon) for replica in range(20)]
    assert np.allclose(found[:, 0], expected)


@pytest.mark.parametrize("epsilon", [-0.01, 1.01, float("nan"), float("inf"), True, "0.1", None])
def test_epsilon_outside_of_its_range_is_refused(epsilon):
    with raises_code("invalid-input", "epsilon"):
        EpsilonGreedy(epsilon)
