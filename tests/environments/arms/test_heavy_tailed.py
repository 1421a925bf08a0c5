import numpy as np
import pytest
from scipy import stats

from submax import HeavyTailed


@pytest.mark.parametrize("degrees", [1.5, 3.0])
def test_noise_has_students_distribution(degrees, seed):
    environment = HeavyTailed(means=(1.0, 5.0), degrees=degrees, noise=2.0)
    rng = np.random.default_rng(seed)
    world = environment.reset(1, rng)
    action = np.ones((1, 4000, 1), dtype=np.int64)
    reward = environment.reward(world, np.zeros((1, 4000, 0)), action, rng)
    found = stats.kstest((reward.ravel() - 5.0) / 2.0, stats.t(degrees).cdf)
    assert found.pvalue > 1e-6
