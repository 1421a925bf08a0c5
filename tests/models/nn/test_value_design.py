import numpy as np
import pytest

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.spaces.arms import Arms
from submax.policies.neural.value_belief import ValueBelief

PROBLEM = Problem(Arms(3), context_width=2)


@pytest.mark.xdist_group("ValueBelief")
@pytest.mark.slow
def test_a_new_value_network_prefers_no_action_and_knows_the_mean_reward(seed):
    """A fixed number of steps starts as fitted steps do: zero head, bias at the mean's logit."""
    rng = np.random.default_rng(seed)
    rows = 400
    reward = (rng.random((2, rows)) < np.array([[0.05], [0.6]])).astype(float)
    feedback = Feedback(
        rng.normal(size=(2, rows, 2)),
        rng.integers(3, size=(2, rows, 1)),
        reward,
        None,
        np.ones((2, rows)),
    )
    training = Training(steps=1, batch=8, learning_rate=1e-8)
    belief = ValueBelief.empty(PROBLEM, 2, 8).trained(feedback, training, 0.0, rng)
    value = 1 / (1 + np.exp(-belief.logits(rng.normal(size=(2, 5, 2)))))
    mean = (reward.sum(axis=1) + 0.5) / (rows + 1)
    np.testing.assert_allclose(value, np.broadcast_to(mean[:, None, None], value.shape), rtol=1e-4)
