import numpy as np
import pytest
from refusals import raises_code

from submax.environments.arms.bernoulli import Bernoulli
from submax.policies.classic.ucb1 import UCB1
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.simulate import simulate


def test_with_random_ties_a_long_batch_is_better_than_chance(seed):
    """The lowest index for a whole batch would be as bad as random choice.

    Reference: an independent simulation gives a regret of 793 ± 22 for 10 arms with Beta(1, 1)
    values, batches of 500 and 5000 decisions, and about 2060 for one arm in every batch.
    """
    trace = simulate(
        Bernoulli(10), UCB1(), observations=5000, replicas=100, delay=BatchFlush(500), seed=seed
    )
    regret = trace.final_regret
    error = np.hypot(22, regret.std(ddof=1) / 10)
    assert abs(regret.mean() - 793) < 6 * error


@pytest.mark.parametrize("exploration", [-1, float("nan"), float("inf"), True, "2", None])
def test_bad_exploration_is_refused(exploration):
    with raises_code("invalid-input", "exploration"):
        UCB1(exploration=exploration)
