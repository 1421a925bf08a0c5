"""A problem for the policies that train value networks, small enough to compile once for all."""

import numpy as np
import pytest
from observations import observed, taught

from submax import Arms, Problem, Training

REPLICAS, ROWS = 4, 400
WHOLE = (1.0,) * REPLICAS


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
        reward = action[..., 0] == (context[..., 0] > 0)
        return taught(policy, problem, observed(action, reward, context, -np.log(3)), seed)

    return learn


@pytest.fixture(scope="session")
def logits():
    """The logits of a network from its arrays, ``[R, n, D] -> [R, n, K]``; masks ``[R, H]``."""

    def forward(network, context, first_mask=WHOLE, second_mask=WHOLE):
        found = []
        for replica, rows in enumerate(context):
            one = [array[replica] for array in network]
            choice, given, first_bias, second_weight, second_bias, head, head_bias = one
            first = np.maximum(choice + (rows @ given)[:, None] + first_bias, 0)
            second = (first * first_mask[replica]) @ second_weight + second_bias
            found.append((np.maximum(second, 0) * second_mask[replica]) @ head + head_bias)
        return np.array(found)

    return forward
