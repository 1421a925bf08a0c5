"""Hybrid LinUCB, compared with algorithm 2 of Li et al. (2010), written with its blocks."""

import numpy as np

from submax import Arms, Continuous, Feedback, Problem
from submax.policies import HybridLinUCB

ACTIONS, WIDTH, ROWS, ALPHA = 3, 2, 30, 1.3
FEATURES = ((0.5,), (2.0,), (-1.0,))
PROBLEM = Problem(Arms(ACTIONS), WIDTH, Continuous(), action_features=(FEATURES,))


class Blocks:
    """The algorithm of the paper: A₀, b₀, and A_a, B_a, b_a of every action."""

    def __init__(self, shared, own):
        self.shared = np.eye(shared)
        self.shared_moment = np.zeros(shared)
        self.own = [np.eye(own) for _ in range(ACTIONS)]
        self.cross = [np.zeros((own, shared)) for _ in range(ACTIONS)]
        self.moment = [np.zeros(own) for _ in range(ACTIONS)]

    def bound(self, action, z, x):
        inverse0, inverse = np.linalg.inv(self.shared), np.linalg.inv(self.own[action])
        cross = self.cross[action]
        beta = inverse0 @ self.shared_moment
        theta = inverse @ (self.moment[action] - cross @ beta)
        variance = (
            z @ inverse0 @ z
            - 2 * z @ inverse0 @ cross.T @ inverse @ x
            + x @ inverse @ x
            + x @ inverse @ cross @ inverse0 @ cross.T @ inverse @ x
        )
        return z @ beta + x @ theta + ALPHA * np.sqrt(variance)

    def learn(self, action, z, x, reward):
        inverse, cross = np.linalg.inv(self.own[action]), self.cross[action]
        self.shared += cross.T @ inverse @ cross
        self.shared_moment += cross.T @ inverse @ self.moment[action]
        self.own[action] += np.outer(x, x)
        self.cross[action] = cross + np.outer(x, z)
        self.moment[action] += reward * x
        inverse, cross = np.linalg.inv(self.own[action]), self.cross[action]
        self.shared += np.outer(z, z) - cross.T @ inverse @ cross
        self.shared_moment += reward * z - cross.T @ inverse @ self.moment[action]


def test_bounds_are_those_of_the_algorithm(seed):
    rng, policy = np.random.default_rng(seed), HybridLinUCB(ALPHA)
    state, blocks = policy.init(PROBLEM, 1, rng), Blocks(2 * (1 + WIDTH), 1 + WIDTH)
    for _ in range(ROWS):
        context = rng.normal(size=(1, 1, WIDTH))
        x = np.array([1.0, *context[0, 0]])
        rows = [np.outer([1.0, *FEATURES[action]], x).ravel() for action in range(ACTIONS)]
        expected = [blocks.bound(action, rows[action], x) for action in range(ACTIONS)]
        found = [
            policy._scores(state, context, np.full((1, 1), action))[0, 0]
            for action in range(ACTIONS)
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-7)
        action = int(rng.integers(ACTIONS))
        reward = float(rng.normal())
        blocks.learn(action, rows[action], x, reward)
        feedback = Feedback(
            context, np.full((1, 1, 1), action), np.full((1, 1), reward), None, np.ones((1, 1))
        )
        state = policy.update(state, feedback, rng)
