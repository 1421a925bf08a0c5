import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.estimators.counting import Counting
from submax.estimators.softmax import Softmax
from submax.policies.reward_conditioned.advantage_conditioned import AdvantageConditioned
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
from submax.strategies.tilted import Tilted
from submax.testing.rules.examples import some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")

SCALE = Continuous(low=-1.0, high=1.0, quantiles=(0.0, 1.0))
BRIEF = Training(steps=6, batch=8, learning_rate=0.05)


def test_without_a_context_it_is_conditioned_on_the_reward(seed):
    """V is a constant then, and a constant that is subtracted from all rewards changes nothing."""
    rng = np.random.default_rng(seed)
    plain = RewardConditioned(Counting(), Tilted(0.3), levels=4)
    policy = AdvantageConditioned(Counting(), Tilted(0.3), levels=4, hidden=4, training=BRIEF)
    problem = Problem(Arms(5), scale=SCALE)
    feedback = some_feedback(problem, 4, 60, seed)
    # The network's scale is from 0 to 1, on which advantages are half as large.
    feedback = feedback._replace(reward=rng.uniform(-0.5, 0.5, size=feedback.reward.shape))
    expected = plain.update(plain.init(problem, 4, rng), feedback, rng)
    found = policy.update(policy.init(problem, 4, rng), feedback, rng)
    context = np.zeros((4, 1, 0))
    np.testing.assert_allclose(
        policy.probabilities(found, context), plain.probabilities(expected, context)
    )


def test_advantages_are_rewards_less_the_value_of_the_context(problem, value, seed):
    policy = AdvantageConditioned(next(Softmax.examples()), levels=3, hidden=4, training=BRIEF)
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, 4, 10, seed)
    state = policy.update(policy.init(problem, 4, rng), feedback, rng)
    stored = state.conditioned.params.buffer
    for replica, row in np.ndindex(4, 10):
        logit = value(state.baseline.network, replica, feedback.context[replica, row], 0)
        expected = feedback.reward[replica, row] - 1 / (1 + np.exp(-logit))
        assert stored.reward[replica, row] == pytest.approx(expected, abs=1e-5)
