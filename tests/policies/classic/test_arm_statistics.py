import numpy as np
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.core.spaces.slots import Slots
from submax.policies.classic.arm_statistics import ArmStatistics
from submax.testing.rules.examples import some_feedback


def test_pulls_and_rewards_are_counted_as_a_slow_loop_does(seed):
    problem = Problem(Slots((2, 3)))
    first, second = (some_feedback(problem, 2, 30, seed + step) for step in range(2))
    second = second._replace(weight=np.random.default_rng(seed).choice([0.0, 1.0, 2.0], (2, 30)))
    found = ArmStatistics.empty(problem, 2).add(first).add(second)
    pulls, rewards = np.zeros((2, 6)), np.zeros((2, 6))
    for feedback in (first, second):
        for replica in range(2):
            for row in range(30):
                choices = feedback.action[replica, row]
                arm = 3 * choices[0] + choices[1]
                weight = feedback.weight[replica, row]
                pulls[replica, arm] += weight
                rewards[replica, arm] += weight * feedback.reward[replica, row]
    assert np.allclose(found.pulls, pulls)
    assert np.allclose(found.rewards, rewards)
    expected = np.divide(rewards, pulls, out=np.zeros((2, 6)), where=pulls > 0)
    assert np.allclose(found.means(), expected)


def test_a_space_that_is_too_large_is_refused():
    with raises_code("invalid-input"):
        ArmStatistics.empty(Problem(Arms(2**20 + 1)), 1)
