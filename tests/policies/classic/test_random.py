import numpy as np

from submax.core.contracts.problem import Problem
from submax.core.spaces.slots import Slots
from submax.policies.classic.random import Random
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit


def test_every_action_of_a_space_too_large_to_list_is_as_likely(seed):
    space = Slots((10,) * 12)
    policy, rng = Random(), np.random.default_rng(seed)
    state = policy.init(Problem(space), 2, rng)
    decision = policy.act(state, np.zeros((2, 2000, 0)), rng)
    assert np.allclose(decision.log_prob, -12 * np.log(10))
    for slot in range(12):
        p_value = goodness_of_fit(decision.action[..., slot], np.full(10, 0.1))
        assert p_value > SMALLEST_P_VALUE
