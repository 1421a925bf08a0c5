"""A problem for the policies that train value networks, small enough to compile once for all."""

import numpy as np
import pytest

from submax import Arms, Feedback, Problem, Training

REPLICAS, ROWS = 4, 400


@pytest.fixture(scope="session")
def training():
    return Training(steps=100, batch=64, learning_rate=0.03)


@pytest.fixture(scope="session")
def problem():
    return Problem(Arms(3), context_width=2)


@pytest.fixture(scope="session")
def learned(problem, seed):
    """Let a policy learn from uniform choices that arm 1 pays where the first number is 1, else 0.

    Arm 2 never pays. The choices were made with known probabilities.
    """

    def learn(policy):
        rng = np.random.default_rng((seed, 5))
        context = rng.choice([-1.0, 1.0], size=(REPLICAS, ROWS, 2))
        action = rng.integers(3, size=(REPLICAS, ROWS, 1))
        reward = (action[..., 0] == (context[..., 0] > 0)).astype(np.float64)
        log_prob = np.full(reward.shape, -np.log(3))
        feedback = Feedback(context, action, reward, log_prob, np.ones(reward.shape))
        return policy.update(policy.init(problem, REPLICAS, rng), feedback, rng)

    return learn


@pytest.fixture(scope="session")
def earned(seed):
    """The mean reward of a policy's decisions in new contexts; uniform choices earn a third."""

    def measure(policy, state):
        rng = np.random.default_rng((seed, 6))
        context = rng.choice([-1.0, 1.0], size=(REPLICAS, 500, 2))
        action = policy.act(state, context, rng).action[..., 0]
        return float(np.mean(action == (context[..., 0] > 0)))

    return measure


@pytest.fixture(scope="session")
def table(problem):
    """Probability of every arm in each row, ``[R, n, K]``."""

    def listed(policy, state, context):
        shape = (*context.shape[:2], 1)
        rows = [policy.log_prob(state, context, np.full(shape, arm)) for arm in range(3)]
        return np.exp(np.stack(rows, axis=-1))

    return listed


@pytest.fixture(scope="session")
def value():
    """The logit of a network, one action at a time, from its arrays; masks ``[H]`` if given."""

    def forward(network, replica, context, arm, first_mask=1.0, second_mask=1.0):
        one = [array[replica] for array in network]
        choice, given, first_bias, second_weight, second_bias, head, head_bias = one
        first = np.maximum(choice[arm] + context @ given + first_bias, 0) * first_mask
        second = np.maximum(first @ second_weight + second_bias, 0) * second_mask
        return second @ head + head_bias

    return forward
