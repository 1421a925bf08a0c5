import math

import numpy as np
import pytest

from submax.live.lift.lift_tally import LiftTally
from submax.live.lift.mixture_boundary import log_mixture, mixing_precision, mixture_boundary

RUNS, DECISIONS, LOOK = 1000, 3000, 100


def looks(share, chances, base, rng):
    """Tallies of all runs at every look, and the true mean lift: ``[RUNS, looks]``."""
    truth = np.cumsum(chances - base)[LOOK - 1 :: LOOK] / np.arange(LOOK, DECISIONS + 1, LOOK)
    tallies = []
    for _ in range(RUNS):
        held_out = rng.random(DECISIONS) < share
        reward = (rng.random(DECISIONS) < np.where(held_out, base, chances)).astype(float)
        tally, found = LiftTally(share), []
        for first in range(0, DECISIONS, LOOK):
            tally = tally.add(reward[first : first + LOOK], held_out[first : first + LOOK])
            found.append(tally)
        tallies.append(found)
    return tallies, truth


def at(tallies, name):
    return np.array([[getattr(one, name) for one in run] for run in tallies])


@pytest.mark.parametrize(("share", "base"), [(0.1, 0.02), (0.1, 0.3), (0.5, 0.1)])
def test_the_truth_is_outside_at_any_look_in_at_most_five_percent_of_runs(share, base, seed):
    rng = np.random.default_rng([seed, round(100 * base)])
    # A bandit that learns: its chance of a reward rises, and so does the lift.
    chances = np.linspace(base, 1.5 * base, DECISIONS)
    tallies, truth = looks(share, chances, base, rng)
    # The interval has exactly those values at which the mixture is below its limit.
    scale, tightest_at = LiftTally(share).boundary_of(1.0)
    deviation = np.abs(at(tallies, "sum") - truth * at(tallies, "decisions"))
    mixing = mixing_precision(tightest_at, 0.05)
    grown = log_mixture(deviation, at(tallies, "squares"), scale, mixing)
    missed = (grown >= math.log(2 / 0.05)).any(axis=1)
    assert missed.mean() <= 0.05
    # The interval says something: it is shorter than four times that of a single look.
    fixed = 2 * 1.96 * math.sqrt(base * (1 - base) / (share * (1 - share)) / DECISIONS)
    widths = [run[-1].lift((0.0, 1.0)) for run in tallies[:20]]
    assert np.median([one.high - one.low for one in widths]) < 4 * fixed
    found = tallies[0][-1].lift((0.0, 1.0))
    half = mixture_boundary(tallies[0][-1].squares, 0.05, scale, tightest_at) / DECISIONS
    assert (found.low, found.high) == (found.estimate - half, found.estimate + half)


def test_without_bounds_large_samples_are_covered_too(seed):
    rng = np.random.default_rng([seed, 7])
    tallies, truth = looks(0.5, np.full(DECISIONS, 0.3), 0.3, rng)
    found = [[one.lift(None) for one in run] for run in tallies]
    low, high = ([[getattr(one, end) for one in run] for run in found] for end in ("low", "high"))
    missed = ((truth < np.array(low)) | (truth > np.array(high))).any(axis=1)
    assert missed.mean() <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / RUNS)


def test_the_estimate_is_unbiased(seed):
    rng = np.random.default_rng([seed, 9])
    found = []
    for _ in range(400):
        held_out = rng.random(200) < 0.2
        reward = np.where(held_out, 1.0, 3.0) + rng.normal(size=200)
        found.append(LiftTally(0.2).add(reward, held_out).lift(None).estimate)
    error = np.std(found, ddof=1) / math.sqrt(len(found))
    assert abs(np.mean(found) - 2.0) <= 4 * error


def test_it_does_not_matter_how_decisions_are_divided(seed):
    rng = np.random.default_rng([seed, 11])
    held_out, reward = rng.random(500) < 0.3, rng.normal(size=500)
    together = LiftTally(0.3).add(reward, held_out)
    apart = LiftTally(0.3)
    for first, last in ((0, 1), (1, 1), (1, 260), (260, 500)):
        apart = apart.add(reward[first:last], held_out[first:last])
    assert apart == together


def test_before_any_decision_nothing_is_known():
    found = LiftTally(0.1).lift((0.0, 1.0))
    assert math.isnan(found.estimate)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_the_interval_stays_within_what_is_possible():
    found = LiftTally(0.5).add(np.ones(1), np.zeros(1, dtype=bool)).lift((0.0, 1.0))
    assert (found.low, found.high) == (-1.0, 1.0)
