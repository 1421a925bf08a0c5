import math
from typing import NamedTuple

import numpy as np
import pytest

from submax.bandit import lift as unit_sample
from submax.bandit.lift import (
    CLUSTERS,
    PLANNED_DECISIONS,
    SAMPLE_RATIO_ERROR,
    LiftTally,
    UnitSample,
    cluster_of,
    log_evidence,
    sample_ratio,
)
from submax.statistics.boundary import log_mixture, mixing_precision, mixture_boundary

RUNS, DECISIONS, LOOK = 1000, 3000, 100
TOLERANCE = 4 * math.sqrt(0.05 * 0.95 / RUNS)
"""How far a share of 5 % of the runs may be exceeded by chance."""


class SimulatedLooks(NamedTuple):
    """Sums of x and of x² of many simulated runs at every look, ``[runs, looks]``."""

    share: float
    decisions: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, share, reward, held_out):
        """``reward`` and ``held_out`` are ``[runs, decisions]``."""
        x = weighted(share, reward, held_out)
        decisions = np.arange(LOOK, reward.shape[1] + 1, LOOK)
        sums, squares = (np.cumsum(one, axis=1)[:, LOOK - 1 :: LOOK] for one in (x, x**2))
        return cls(share, decisions, sums, squares)

    def clustered(self, x, cluster):
        """With squares of sums by clusters; ``cluster [runs, decisions]`` has their numbers."""
        looks, squares = len(self.decisions), np.empty_like(self.squares)
        look = np.arange(x.shape[1]) // LOOK
        for run, (values, where) in enumerate(zip(x, cluster, strict=True)):
            place, size = look * CLUSTERS + where, looks * CLUSTERS
            sums = np.bincount(place, values, size).reshape(looks, -1).cumsum(axis=0)
            counts = np.bincount(place, None, size).reshape(looks, -1).cumsum(axis=0)
            mean = self.sums[run] / self.decisions
            squares[run] = ((sums - mean[:, None] * counts) ** 2).sum(axis=1)
        return self._replace(squares=squares)

    def exact_misses(self, truth, error):
        """Whether the mean ``truth [looks]`` is outside the exact interval, for bounds 0 and 1."""
        scale, tightest_at = LiftTally(self.share).boundary_of(1.0)
        deviation = np.abs(self.sums - truth * self.decisions)
        mixing = mixing_precision(tightest_at, error)
        return log_mixture(deviation, self.squares, scale, mixing) >= math.log(2 / error)

    def large_sample_misses(self, truth, error):
        """Whether the truth is outside the interval for large samples."""
        boundary = [mixture_boundary(one, error, 0.0, PLANNED_DECISIONS) for one in self.decisions]
        width = np.sqrt(self.squares / self.decisions) * boundary
        return np.abs(self.sums - truth * self.decisions) >= width


def weighted(share, reward, held_out):
    """The numbers x of ``LiftTally``, ``[runs, decisions]``."""
    before = np.cumsum(reward, axis=1) - reward
    centre = before / (1 + np.arange(reward.shape[1]))
    return (reward - centre) * np.where(held_out, -1 / share, 1 / (1 - share))


def drawn(share, chances, base, rng):
    held_out = rng.random((RUNS, DECISIONS)) < share
    reward = (rng.random((RUNS, DECISIONS)) < np.where(held_out, base, chances)).astype(float)
    return reward, held_out


@pytest.mark.parametrize(("share", "base"), [(0.1, 0.02), (0.1, 0.3), (0.5, 0.1)])
def test_the_truth_is_outside_at_any_look_in_at_most_five_percent_of_runs(share, base, seed):
    rng = np.random.default_rng([seed, round(100 * base)])
    # A bandit that learns: its chance of a reward rises, and so does the lift.
    chances = np.linspace(base, 1.5 * base, DECISIONS)
    reward, held_out = drawn(share, chances, base, rng)
    looks = SimulatedLooks.of(share, reward, held_out)
    truth = np.cumsum(chances - base)[LOOK - 1 :: LOOK] / looks.decisions
    missed = looks.exact_misses(truth, 0.05).any(axis=1)
    assert missed.mean() <= 0.05
    # The tally has the numbers of the simulation, and its interval the values that are not missed.
    tally = LiftTally(share)
    for look in range(DECISIONS // LOOK):
        part = slice(look * LOOK, (look + 1) * LOOK)
        tally = tally.add(reward[0, part], held_out[0, part])
        assert tally.sum == pytest.approx(looks.sums[0, look])
        assert tally.squares == pytest.approx(looks.squares[0, look])
    found = tally.lift((0.0, 1.0))
    assert found.exact
    for end, inside in ((found.low, 1e-6), (found.high, -1e-6)):
        assert not looks.exact_misses(end + inside, 0.05)[0, -1]
        assert looks.exact_misses(end - inside, 0.05)[0, -1]
    # The interval says something: it is shorter than four times that of a single look.
    fixed = 2 * 1.96 * math.sqrt(base * (1 - base) / (share * (1 - share)) / DECISIONS)
    assert found.high - found.low < 4 * fixed


def test_the_truth_is_covered_if_the_bandit_learns_from_the_rewards_it_gets(seed):
    rng = np.random.default_rng([seed, 23])
    chances, base = np.array([0.1, 0.3]), 0.1
    wins, losses = np.ones((RUNS, 2)), np.ones((RUNS, 2))
    rewards, held, truths = [], [], []
    for _ in range(DECISIONS // LOOK):
        # Thompson sampling, updated at every look: its share of the better arm is random.
        drawn = rng.beta(wins[:, None], losses[:, None], (RUNS, LOOK, 2))
        arm = drawn.argmax(axis=2)
        held_out = rng.random((RUNS, LOOK)) < 0.2
        reward = rng.random((RUNS, LOOK)) < np.where(held_out, base, chances[arm])
        for one in range(2):
            tried = (arm == one) & ~held_out
            wins[:, one] += (tried & reward).sum(axis=1)
            losses[:, one] += (tried & ~reward).sum(axis=1)
        better = (drawn[..., 1] > drawn[..., 0]).astype(float)
        truths.append((chances[0] + better * (chances[1] - chances[0]) - base).sum(axis=1))
        rewards.append(reward.astype(float))
        held.append(held_out)
    looks = SimulatedLooks.of(0.2, np.hstack(rewards), np.hstack(held))
    truth = np.cumsum(np.stack(truths, axis=1), axis=1) / looks.decisions
    assert looks.exact_misses(truth, 0.05).any(axis=1).mean() <= 0.05


def test_without_bounds_large_samples_are_covered_too(seed):
    rng = np.random.default_rng([seed, 7])
    held_out = rng.random((RUNS, DECISIONS)) < 0.3
    # Prices: one visitor in ten pays, and amounts are skewed.
    paid = rng.random((RUNS, DECISIONS)) < 0.1
    reward = paid * rng.lognormal(2.0, 0.5, (RUNS, DECISIONS))
    looks = SimulatedLooks.of(0.3, reward, held_out)
    missed = looks.large_sample_misses(np.zeros(len(looks.decisions)), 0.05)
    # At the first look each group has at least about 30 decisions, of which 3 paid.
    assert missed[:, 2:].any(axis=1).mean() <= 0.05 + TOLERANCE
    tally = LiftTally(0.3).add(reward[0], held_out[0])
    found = tally.lift(None)
    assert not found.exact
    assert not looks.large_sample_misses(found.low + 1e-6, 0.05)[0, -1]
    assert looks.large_sample_misses(found.low - 1e-6, 0.05)[0, -1]


def test_units_that_come_again_are_clusters(seed):
    rng, units = np.random.default_rng([seed, 11]), 400
    # Some units come again often, and they differ in their rewards.
    often = rng.gamma(0.5, size=(RUNS, units)) + 0.05
    points = rng.random((RUNS, DECISIONS)) * often.sum(axis=1, keepdims=True)
    ends = np.cumsum(often, axis=1)
    unit = np.stack([np.searchsorted(*one) for one in zip(ends, points, strict=True)])
    unit = np.minimum(unit, units - 1)
    held_out = np.take_along_axis(rng.random((RUNS, units)) < 0.2, unit, axis=1)
    chance = np.take_along_axis(rng.beta(0.5, 2.0, (RUNS, units)), unit, axis=1)
    reward = (rng.random((RUNS, DECISIONS)) < chance).astype(float)
    looks = SimulatedLooks.of(0.2, reward, held_out)
    numbers = np.array([cluster_of(f"visitor-{one}") for one in range(units)])
    clustered = looks.clustered(weighted(0.2, reward, held_out), numbers[unit])
    truth = np.zeros(len(looks.decisions))
    missed = clustered.large_sample_misses(truth, 0.05).any(axis=1)
    assert missed.mean() <= 0.05 + TOLERANCE
    # If decisions were taken as independent, the interval would be wrong.
    assert looks.large_sample_misses(truth, 0.05).any(axis=1).mean() > 0.05 + TOLERANCE
    names = [f"visitor-{one}" for one in unit[0]]
    tally = LiftTally(0.2)
    for first in range(0, DECISIONS, 700):
        part = slice(first, first + 700)
        tally = tally.add(reward[0, part], held_out[0, part], names[part])
    found = tally.lift((0.0, 1.0))
    assert not found.exact
    assert tally.clusters.variance(found.estimate) == pytest.approx(clustered.squares[0, -1])


def test_decisions_with_and_without_units_can_follow_each_other(seed):
    rng = np.random.default_rng([seed, 13])
    held_out, reward = rng.random(600) < 0.3, rng.normal(size=600)
    units = [None] * 300 + [None if one % 3 else f"visitor-{one}" for one in range(300)]
    tally = LiftTally(0.3).add(reward[:300], held_out[:300])
    assert tally.clusters is None
    tally = tally.add(reward[300:], held_out[300:], units[300:])
    x = weighted(0.3, reward[None], held_out[None])[0]
    mean = x.mean()
    sums = np.zeros(CLUSTERS)
    for value, unit in zip(x, units, strict=True):
        if unit is not None:
            sums[cluster_of(unit)] += value - mean
    alone = sum((value - mean) ** 2 for value, unit in zip(x, units, strict=True) if unit is None)
    assert tally.clusters.variance(mean) == pytest.approx(alone + (sums**2).sum())


def test_an_a_a_test_raises_a_false_alarm_in_at_most_five_percent_of_runs(seed):
    rng = np.random.default_rng([seed, 17])
    reward, held_out = drawn(0.1, np.full(DECISIONS, 0.1), 0.1, rng)
    looks = SimulatedLooks.of(0.1, reward, held_out)
    differs = looks.exact_misses(np.zeros(len(looks.decisions)), 0.04)
    chosen = np.cumsum(held_out, axis=1)[:, LOOK - 1 :: LOOK]
    evidence = log_evidence(0.1, chosen, looks.decisions)
    wrong_sizes = evidence >= math.log(1 / SAMPLE_RATIO_ERROR)
    assert (differs | wrong_sizes).any(axis=1).mean() <= 0.05


def test_a_wrong_sample_ratio_is_found(seed):
    rng = np.random.default_rng([seed, 19])
    # One in ten decisions of the holdout is lost.
    chosen = rng.binomial(200_000, 0.09 / 0.99)
    # An alarm begins about 5 standard deviations below 0.1, which is 9 above what is expected here.
    assert sample_ratio(0.1, int(chosen), 200_000).alarm
    assert not sample_ratio(0.1, 2000, 20_000).alarm
    assert sample_ratio(0.1, 0, 0).p_value == 1.0


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
    mean, mean_of_group = together.means
    assert mean == pytest.approx(reward[~held_out].mean())
    assert mean_of_group == pytest.approx(reward[held_out].mean())


def test_intervals_of_few_decisions_are_as_wide_as_what_is_possible():
    nothing = LiftTally(0.1).lift(None)
    assert math.isnan(nothing.estimate)
    assert (nothing.low, nothing.high) == (-math.inf, math.inf)
    one = LiftTally(0.5).add(np.ones(1), np.zeros(1, dtype=bool)).lift((0.0, 1.0))
    assert (one.low, one.high) == (-1.0, 1.0)
    # The centre is within the bounds of rewards: otherwise |x| could be larger than is assumed.
    tally = LiftTally(0.5, start=90.0).add(np.full(1, 100.0), np.zeros(1, dtype=bool))
    assert tally.squares == (2 * 10.0) ** 2


def test_each_unit_is_counted_once_and_of_many_a_sample_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(unit_sample, "MAX_UNITS", 256)
    few, many = UnitSample(), UnitSample()
    units = [f"visitor-{number % 200}" for number in range(600)]
    assert [few.is_new(unit) for unit in units] == [True] * 200 + [False] * 400
    counted = [number for number in range(20_000) if many.is_new(f"visitor-{number}")]
    assert len(many.known) <= 256
    assert not any(many.is_new(f"visitor-{number}") for number in range(20_000))
    # The sample does not depend on the group.
    share = np.mean([number % 5 == 0 for number in counted])
    assert abs(share - 0.2) < 4.5 * math.sqrt(0.2 * 0.8 / len(counted))
