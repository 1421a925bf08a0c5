import math
import re
from dataclasses import replace

import numpy as np
import pytest
from refusals import raises_code
from scipy.special import softmax
from scipy.stats import chi2
from sklearn.linear_model import LinearRegression

from logs import log_of_arrays
from submax.core.numerics import draw
from submax.evaluation import Log, compare
from submax.evaluation.propensities import with_estimated_propensities

ROWS, CHOICES = 6000, 4


def chosen(probability, rng):
    return draw(probability[None], len(probability), rng)[0]


def of_softmax(seed, rows=ROWS, eligible=None):
    """Rows of a policy p(a | x) = softmax(θ · (1, x)), and all its probabilities."""
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(rows, 2))
    theta = rng.normal(0.0, 0.7, (3, CHOICES))
    score = np.column_stack([np.ones(rows), context]) @ theta
    if eligible is not None:
        score = np.where(eligible, score, -np.inf)
    probability = softmax(score, axis=1)
    return context, chosen(probability, rng), probability


def tolerance(parameters, rows):
    """What the root mean square error of an estimated probability exceeds once in a million.

    2 n KL is chi-square with as many degrees of freedom as there are parameters (Wilks), and
    (p̂ - p)² ≤ KL / 2 (Pinsker). The penalty adds a little of the order 1 / n.
    """
    return 0.5 * math.sqrt(chi2.isf(1e-6, parameters) / rows) + 10 / rows


def rms(error):
    return float(np.sqrt(np.mean(np.square(error))))


def test_estimates_are_near_the_policy_that_logged(seed, mentioned):
    context, action, probability = of_softmax(seed)
    log = with_estimated_propensities(log_of_arrays(action, np.ones(ROWS), context=context), 0)
    wanted = probability[np.arange(ROWS), action]
    assert rms(log.propensity - wanted) < tolerance(3 * (CHOICES - 1), ROWS)
    assert log.estimated.all()
    assert mentioned(log.notes, ROWS)
    assert log.slot_propensity[:, 0] == pytest.approx(log.propensity)


def test_without_context_the_estimates_are_the_shares(seed):
    rng = np.random.default_rng(seed)
    action = rng.choice(3, 500, p=[0.2, 0.3, 0.5])
    log = with_estimated_propensities(Log.read({"action": action, "reward": np.ones(500)}), 0)
    share = np.bincount(action) / 500
    # Up to the end of the search, and a penalty of next to nothing.
    assert log.propensity == pytest.approx(share[action], abs=1e-3)


def test_what_was_not_eligible_has_no_probability(seed):
    rng = np.random.default_rng(seed)
    sets = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 1, 1]], dtype=bool)
    which = rng.integers(len(sets), size=ROWS)
    context, action, probability = of_softmax(seed, eligible=sets[which])
    names = ["|".join(str(one) for one in np.flatnonzero(eligible)) for eligible in sets]
    table = {
        "action": action,
        "reward": np.ones(ROWS),
        "context_x0": context[:, 0],
        "context_x1": context[:, 1],
        "eligible": [names[one] for one in which],
    }
    log = with_estimated_propensities(Log.read(table), 0)
    wanted = probability[np.arange(ROWS), action]
    assert rms(log.propensity - wanted) < tolerance(3 * (CHOICES - 1), ROWS)
    # The only choice was taken for sure.
    assert log.propensity[which == 2] == pytest.approx(1.0)


def test_slots_are_estimated_one_by_one(seed):
    context, title, first = of_softmax(seed)
    rng = np.random.default_rng(seed + 1000)
    second = softmax(np.column_stack([context, -context.sum(axis=1)]), axis=1)
    layout = chosen(second, rng)
    log = log_of_arrays(np.column_stack([title, layout]), np.ones(ROWS), context=context)
    log = with_estimated_propensities(log, 0)
    row = np.arange(ROWS)
    wanted = np.column_stack([first[row, title], second[row, layout]])
    assert rms(log.slot_propensity[:, 0] - wanted[:, 0]) < tolerance(3 * (CHOICES - 1), ROWS)
    assert rms(log.slot_propensity[:, 1] - wanted[:, 1]) < tolerance(3 * 2, ROWS)
    assert log.propensity == pytest.approx(log.slot_propensity.prod(axis=1))


def test_only_gaps_are_filled_and_marked(seed, mentioned):
    context, action, probability = of_softmax(seed, rows=1000)
    logged = probability[np.arange(1000), action]
    gaps = np.random.default_rng(seed).random(1000) < 0.3
    known = [None if gap else one for gap, one in zip(gaps, logged, strict=True)]
    log = log_of_arrays(action, np.ones(1000), propensity=known, context=context)
    filled = with_estimated_propensities(log, 0)
    assert filled.estimated.tolist() == gaps.tolist()
    assert filled.propensity[~gaps].tolist() == logged[~gaps].tolist()
    assert rms(filled.propensity[gaps] - logged[gaps]) < tolerance(3 * (CHOICES - 1), 1000)
    assert mentioned(filled.notes, gaps.sum(), 1000)
    assert filled.rows(gaps).estimated.all()
    assert with_estimated_propensities(filled, 0) is filled


def test_propensities_of_intervals_are_not_estimated():
    table = {"action_price": [1.5, 2.5], "reward": [1, 0]}
    log = Log.read(table, actions={"price": (1, 10)})
    with raises_code("invalid-input"):
        with_estimated_propensities(log, 0)


def test_an_estimate_far_below_the_frequency_of_its_choice_is_raised_to_the_floor():
    rows = 2000
    x = np.linspace(-1, 1, rows)
    action = np.where(x > 0, "A", "B")
    # One row took the choice that the model considers nearly impossible.
    action[-1] = "B"
    reward = np.arange(rows) % 2
    log = Log.read({"action": action, "reward": reward, "context_x": x})
    filled = with_estimated_propensities(log, 0)
    floor = min(1 / np.sqrt(rows), 0.1 * np.mean(action == "B"))
    assert filled.propensity.min() == pytest.approx(floor)
    assert filled.propensity[-1] == pytest.approx(floor)
    plain = filled.propensity / filled.raised
    assert plain[-1] < floor / 4
    assert np.all(filled.raised >= 1)
    assert len(filled.rows(np.arange(10)).raised) == 10


@pytest.mark.parametrize("low", [0.0, 10.0])
def test_the_bias_of_the_floor_is_at_most_what_is_stated(low, seed):
    """The bound is compared with what the floor changes, also if rewards are far from 0."""
    rows, rng = 3000, np.random.default_rng(seed)
    x = np.linspace(-1, 1, rows)
    action = np.where(rng.random(rows) < 1 / (1 + np.exp(-6 * x)), "A", "B")
    reward = low + rng.random(rows)
    log = Log.read({"action": action, "reward": reward, "context_x": x}, rewards="continuous")
    filled = with_estimated_propensities(log, 0)
    plain = replace(filled, propensity=filled.propensity / filled.raised, raised=None)
    kinds, policy = ["ips", "snips", "dr", "dm"], {"even": np.full((rows, 2), 0.5)}
    with_floor, without = (
        compare(one, policy, estimators=kinds, reward_model=LinearRegression())
        for one in (filled, plain)
    )
    # What was raised is noted, and no estimate that uses propensities is without its own bound.
    assert len(filled.notes) > len(log.notes)
    for kind in kinds[:3]:
        one, other = with_floor.find("even", kind), without.find("even", kind)
        (stated,) = set(one.cautions) - set(other.cautions)
        bound = float(re.findall(r"\d[\d.e-]*", stated)[-1])
        assert 0 < abs(one.value - other.value) <= 1.05 * bound
    assert with_floor.find("even", "dm").cautions == without.find("even", "dm").cautions
