import numpy as np
import pytest

from submax.evaluation.logs.log import Log
from submax.evaluation.models import reward_map
from submax.evaluation.models.reward_map import KERNELS, reward_maps
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence


def log_of(rows, width, seed, choices=3):
    rng = np.random.default_rng(seed)
    return Log.from_arrays(
        rng.integers(choices, size=rows),
        rng.normal(size=rows),
        propensity=np.full(rows, 1 / choices),
        context=rng.normal(size=(rows, width)),
        actions=[str(one) for one in range(choices)],
    )


@pytest.mark.parametrize(
    ("rows", "width", "choices", "features"),
    [
        (10 * KERNELS, 4, 3, 5 + KERNELS),
        (600, 4, 3, 5 + 60),
        (60, 4, 3, 5),
        (300, 0, 3, 1),
        (300, 200, 3, 201),
        (300, 30, 2000, 31),
        (300, 30, 5000, 28),
    ],
    ids=[
        "kernels",
        "some rows",
        "few rows",
        "no context",
        "wide context",
        "many arms",
        "too many arms",
    ],
)
@pytest.mark.slow
def test_features_fit_the_rows_and_the_memory(rows, width, choices, features, monkeypatch):
    # How many features there are depends neither on the kernel length nor on the prior.
    monkeypatch.setattr(reward_map, "LENGTHS", reward_map.LENGTHS[-1:])
    monkeypatch.setattr(reward_map, "STEPS", 1)
    log = log_of(rows, width, 0, choices)
    for found in reward_maps(log, np.arange(rows) % 2, 2):
        assert found.feature_map.width == features


def test_what_is_not_linear_in_the_context_is_learned(seed):
    rng = np.random.default_rng(seed)
    x, action = rng.normal(size=(6000, 2)), rng.integers(2, size=6000)
    expected = np.where(action == 1, np.abs(x[:, 0]), x[:, 0] * x[:, 1])
    reward = expected + rng.normal(size=6000)
    log = Log.from_arrays(action, reward, propensity=np.full(6000, 0.5), context=x)
    predicted = LoggedEvidence(log).about_logging_policy().evidence.predicted
    assert np.var(expected - predicted) < 0.08 * np.var(expected)


def test_noise_is_not_learned(seed):
    log = log_of(600, 5, seed)
    predicted = LoggedEvidence(log).about_logging_policy().evidence.predicted
    # Least squares on all features would predict about as much variance as there is.
    assert np.var(predicted) < 0.1
