import math

import numpy as np
import pytest

from submax.evaluation.log import Log
from submax.evaluation.reward_features import WAVES, RewardFeatures
from submax.evaluation.witness import Witness


def log_of(rows, width, seed, choices=3, **options):
    rng = np.random.default_rng(seed)
    action = rng.integers(choices, size=rows)
    return Log.from_arrays(
        action,
        rng.normal(size=rows),
        propensity=np.full(rows, 1 / choices),
        context=rng.normal(size=(rows, width)),
        actions=[str(one) for one in range(choices)],
        **options,
    )


def test_products_of_waves_are_a_gaussian_kernel(seed):
    log = log_of(3000, 4, seed)
    features = RewardFeatures.of(log)
    context = log.parts[0].context[:40]
    waves = features.rows(context)[:, 5:]
    seen = features.standardization.apply(context.astype(float))
    distance = ((seen[:, None] - seen[None]) ** 2).sum(axis=2)
    found, kernel = waves @ waves.T / WAVES, np.exp(-distance / 8)
    # 2 cos cos has a variance of at most 1.5, and 780 pairs are compared.
    assert np.abs(found - kernel).max() < 5 * math.sqrt(1.5 / WAVES)


@pytest.mark.parametrize(
    ("rows", "width", "choices", "waves"),
    [(3000, 4, 3, WAVES), (150, 4, 3, 10), (60, 4, 3, 0), (3000, 0, 3, 0), (3000, 30, 200, 0)],
)
def test_there_are_as_many_waves_as_the_rows_are_enough_for(rows, width, choices, waves):
    features = RewardFeatures.of(log_of(rows, width, 0, choices))
    assert features.phases.size == waves
    assert features.width == 1 + width + waves


def test_what_is_not_linear_in_the_context_is_learned(seed):
    rng = np.random.default_rng(seed)
    x, action = rng.normal(size=(6000, 2)), rng.integers(2, size=6000)
    expected = np.where(action == 1, np.abs(x[:, 0]), x[:, 0] * x[:, 1])
    reward = expected + rng.normal(size=6000)
    log = Log.from_arrays(action, reward, propensity=np.full(6000, 0.5), context=x)
    predicted = Witness(log).of_the_log().evidence.predicted
    assert np.var(expected - predicted) < 0.15 * np.var(expected)
