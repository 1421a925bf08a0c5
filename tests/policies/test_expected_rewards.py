"""What every action is believed to earn agrees with what it earned."""

import numpy as np
import pytest

from submax import Arms, Continuous, Discrete, Feedback, Problem, Slots
from submax.estimators import Counting
from submax.policies import UCB1, EpsilonGreedy, PosteriorSlots, RewardConditioned, Thompson

LEVELS = (0.0, 1.0, 4.0)
ROWS = 400


@pytest.mark.parametrize(
    ("policy", "tolerance"),
    [
        (RewardConditioned(Counting(smoothing=0.0)), 1e-9),
        (EpsilonGreedy(), 1e-9),
        (UCB1(), 1e-9),
        # A prior of one success and one failure moves a mean of n rewards by less than 4 / n.
        (Thompson(), 4 / 40),
    ],
)
def test_it_is_the_mean_reward_of_each_arm(policy, tolerance, seed):
    rng = np.random.default_rng(seed)
    problem = Problem(Arms(4), scale=Discrete(LEVELS))
    arm = np.arange(ROWS)[None] % 3
    reward = rng.choice(LEVELS, size=arm.shape)
    feedback = Feedback(
        np.zeros((1, ROWS, 0)), arm[..., None], reward, np.full(arm.shape, -1.0), np.ones(arm.shape)
    )
    state = policy.update(policy.init(problem, 1, rng), feedback, rng)
    found = policy.expected_rewards(state, np.zeros((1, 1, 0)))[0, 0]
    means = [reward[arm == one].mean() for one in range(3)]
    assert found[:3] == pytest.approx(means, abs=tolerance)


def test_effects_of_slots_add_up(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(Slots((2, 3)), scale=Continuous())
    action = rng.integers([2, 3], size=(1, ROWS, 2))
    means = np.array([0.0, 0.3])[action[..., 0]] + np.array([0.0, 0.2, 0.4])[action[..., 1]]
    reward = means + rng.normal(scale=0.1, size=means.shape)
    feedback = Feedback(np.zeros((1, ROWS, 0)), action, reward, None, np.ones(means.shape))
    policy = PosteriorSlots(draws=4)
    state = policy.init(problem, 1, rng)
    assert np.isnan(policy.expected_rewards(state, np.zeros((1, 1, 0)))).all()
    found = policy.expected_rewards(policy.update(state, feedback, rng), np.zeros((1, 1, 0)))[0, 0]
    # Each joint action has about 67 rows; 6 standard errors of their mean.
    error = 6 * 0.1 / np.sqrt(ROWS / 12)
    assert found == pytest.approx([0.0, 0.2, 0.4, 0.3, 0.5, 0.7], abs=error)
