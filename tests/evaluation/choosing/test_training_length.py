"""Warnings about networks that are trained too briefly."""

import numpy as np
import pytest

from submax.evaluation import Log, learn
from submax.evaluation.choosing.training_length import UnderTrainedWarning, training_warnings
from submax.policies import make_policy


def softmax(steps: object) -> object:
    training = {"steps": steps, "batch": 256}
    estimator = {"kind": "softmax", "hidden": 4, "training": training}
    return make_policy({"kind": "reward-conditioned", "strategy": "submax", "estimator": estimator})


@pytest.mark.parametrize(
    ("steps", "rows", "short"),
    [
        (300, 20_000, True),
        (2000, 20_000, False),
        ("fitted", 20_000, False),
        ("fitted", 1_000_000, True),
        ("converged", 1_000_000, False),
    ],
)
def test_a_network_needs_ten_passes_over_the_rows(steps, rows, short):
    assert bool(training_warnings(softmax(steps), rows)) == short


def test_a_policy_without_a_network_has_no_warning():
    assert training_warnings(make_policy("linucb"), 10**8) == []


def test_learn_warns(seed):
    rng = np.random.default_rng(seed)
    log = Log.from_arrays(rng.integers(2, size=300), rng.integers(2, size=300) * 1.0)
    with pytest.warns(UnderTrainedWarning, match="5 steps of 256 rows"):
        learn(log, softmax(5), seed=seed)
