import math

import numpy as np
import pytest

from submax.live.monitoring.alarms.boundary_table import (
    ENTRIES_PER_OCTAVE,
    LARGEST,
    SMALLEST,
    boundary_table,
)
from submax.live.monitoring.alarms.fall_detector import BLOCK, FallDetector
from submax.live.monitoring.alarms.range_detector import FEWEST_OUTSIDE, RangeDetector
from submax.sequential.mixture_boundary import mixture_boundary

RUNS = 60


@pytest.mark.parametrize("bounded", [True, False])
def test_a_bandit_that_only_learns_raises_a_false_alarm_as_rarely_as_is_stated(bounded, seed):
    rng = np.random.default_rng([seed, bounded])
    observations, stated = 3000, 0.1
    error = stated / (1 + observations / BLOCK)
    # The rate rises, as it does while a bandit learns, and then stays.
    chance = np.minimum(np.linspace(0.05, 0.4, observations), 0.2)
    alarms = 0
    for _ in range(RUNS):
        values = (rng.random(observations) < chance).astype(float)
        detector = FallDetector(error, 0.0, 1.0) if bounded else FallDetector(error)
        alarms += bool(detector.add(values if bounded else values + rng.normal(size=observations)))
    # More than this many of RUNS have a chance below 1e-4 if each has the stated one.
    most = stated * RUNS + 4 * math.sqrt(RUNS * stated * (1 - stated))
    assert alarms <= most


def test_a_fall_by_half_is_found(seed):
    rng = np.random.default_rng([seed, 3])
    detector = FallDetector(1e-5, 0.0, 1.0)
    assert detector.add((rng.random(6000) < 0.4).astype(float)) == []
    (fall, *_) = detector.add((rng.random(4000) < 0.2).astype(float))
    assert 6000 < fall.at <= 10_000
    assert fall.at_least > fall.at_most
    assert fall.at_most < 0.4


def test_a_rise_is_no_alarm(seed):
    rng = np.random.default_rng([seed, 4])
    detector = FallDetector(1e-5, 0.0, 1.0)
    values = (rng.random(6000) < np.repeat([0.1, 0.8], 3000)).astype(float)
    assert detector.add(values) == []


@pytest.mark.parametrize("kind", [FallDetector, RangeDetector])
def test_it_does_not_matter_how_observations_are_divided(kind, seed):
    rng = np.random.default_rng([seed, 5])
    if kind is FallDetector:
        values = (rng.random(3000) < np.repeat([0.6, 0.2], 1500)).astype(float)
        together, apart = (FallDetector(1e-3, 0.0, 1.0) for _ in range(2))
    else:
        values = np.repeat([1.0, 30.0, 900.0], 1500) * rng.normal(size=4500)
        together, apart = RangeDetector(), RangeDetector()
    found = together.add(values)
    parts = np.split(values, np.sort(rng.integers(len(values), size=20)))
    assert [one for part in parts for one in apart.add(part)] == found
    assert len({one.at for one in found}) == len(found) >= 1
    assert apart == together


def test_few_beginnings_are_kept():
    detector = FallDetector(1e-5, 0.0, 1.0)
    detector.add(np.tile([0.0, 1.0], 15_000))
    assert len(detector.starts) <= 8 * math.log2(30_000 / BLOCK)


def test_values_from_the_same_distribution_are_not_outside(seed):
    rng = np.random.default_rng([seed, 6])
    for _ in range(20):
        assert RangeDetector().add(rng.standard_cauchy(3000)) == []


def test_values_far_away_are_outside(seed):
    rng = np.random.default_rng([seed, 7])
    detector = RangeDetector()
    assert detector.add(rng.normal(size=1000)) == []
    wrong = np.zeros(100)
    wrong[:FEWEST_OUTSIDE] = 1000.0
    (found,) = detector.add(wrong)
    assert (found.values, found.farthest) == (FEWEST_OUTSIDE, 1000.0)
    assert detector.add(wrong) == []


@pytest.mark.parametrize("error", [0.05, 1e-7])
def test_tabulated_boundaries_are_at_most_a_little_wider_than_the_exact_ones(error):
    variances = np.geomspace(SMALLEST, 1e9, 150)
    exact = np.array([mixture_boundary(one, error, 1.0, 50.0) for one in variances])
    table = boundary_table(error, 50.0)
    ratio = table(variances) / exact
    # Between two entries the variance differs by a factor, and the boundary by less than that.
    assert (ratio >= 1 - 1e-8).all()
    assert (ratio <= 2 ** (1 / ENTRIES_PER_OCTAVE) * (1 + 1e-5)).all()
    below, beyond = table(np.array([0.0, 10 * LARGEST]))
    assert below >= mixture_boundary(0.0, error, 1.0, 50.0)
    assert beyond >= table(np.array([LARGEST]))[0] * np.sqrt(10)
