import numpy as np

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.policies.classic.posterior_greedy import PosteriorGreedy


def test_the_highest_posterior_mean_is_taken_and_ties_share(seed):
    rng = np.random.default_rng(seed)
    policy = PosteriorGreedy(1.0, 3.0)
    state = policy.init(Problem(Arms(4)), 1, rng)
    np.testing.assert_allclose(policy.probabilities(state, np.zeros((1, 1, 0))), 0.25)
    # Means: (1 + 1) / (4 + 2), (1 + 1) / (4 + 2), 1 / 5, and 1 / 4 of an arm that was not pulled.
    action = np.array([[[0], [0], [1], [1], [2]]])
    reward = np.array([[1.0, 0.0, 0.0, 1.0, 0.0]])
    feedback = Feedback(np.zeros((1, 5, 0)), action, reward, None, np.ones((1, 5)))
    state = policy.update(state, feedback, rng)
    assert policy.probabilities(state, np.zeros((1, 1, 0))).tolist() == [[[0.5, 0.5, 0.0, 0.0]]]
