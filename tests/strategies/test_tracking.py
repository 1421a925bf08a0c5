import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises_code
from scipy.optimize import brentq

from submax import Table
from submax.core.conditioning import SampleSizes
from submax.strategies import Tracking

FURTHEST = 60.0
"""How far the logit of the mark may be above that of the best value."""
amounts = st.floats(0.01, 2000.0)
observed = st.integers(0, 10**6)
batches = st.integers(0, 3000)


def table_of(mass, levels=(0.0, 1.0), observations=100, decisions=100):
    """The table behind which ``mass[l][a]`` observations of each level and action stand."""
    mass = np.array(mass, dtype=np.float64)
    evidence = mass.sum(axis=-1)
    return Table(
        mass / np.where(evidence > 0, evidence, 1.0)[..., None],
        np.array(levels, dtype=np.float64),
        evidence / evidence.sum(),
        np.zeros_like(evidence),
        SampleSizes(evidence, np.array(float(observations)), np.array(float(decisions))),
    )


def split(value, evidence):
    """Observations of the two levels, from values and evidence."""
    value, evidence = np.array(value), np.array(evidence)
    return [evidence * (1 - value), evidence * value]


def slow_demand(observations, decisions):
    observations, decisions = max(observations, 1), max(decisions, 20)
    demand = 44 / (decisions**0.3 * observations**0.2)
    return max(min(max(demand, 1.0), 6.0), math.log(observations / (5 * decisions)))


def slow_demands(value, observations, decisions):
    base, crowd = slow_demand(observations, decisions), (len(value) / 2) ** 3
    gaps = [divergence(v, max(value)) for v in value]
    return [max(base, math.log(max(observations * gap / crowd, 1.0))) for gap in gaps]


def divergence(value, mark):
    rest = (1 - value) * math.log((1 - value) / (1 - mark))
    return value * math.log(value / mark) + rest


def slow(mass, levels, observations, decisions, share=1.0):
    """The mark by root finding on plain numbers, one action at a time."""
    decisions = max(decisions, 1)
    evidence = [sum(column) for column in zip(*mass, strict=True)]
    value = []
    for column, total in zip(zip(*mass, strict=True), evidence, strict=True):
        mean = sum(level * part for level, part in zip(levels, column, strict=True)) / total
        value.append((mean - levels[0]) / (levels[-1] - levels[0]))
    foot = math.log(max(value) / (1 - max(value)))
    demands = [share * one for one in slow_demands(value, max(observations, 1), decisions)]

    def missing(place):
        mark = 1 / (1 + math.exp(-foot - math.exp(place)))
        arms = zip(demands, value, evidence, strict=True)
        return [max(demand / divergence(v, mark) - s, 0.0) for demand, v, s in arms]

    # Where even a mark near one leaves more to fill, shares are those at the furthest mark.
    furthest = math.log(min(FURTHEST, 30.0 - foot))
    if sum(missing(furthest)) > decisions:
        return None
    place = brentq(lambda at: sum(missing(at)) - decisions, -8.0, furthest, xtol=1e-13)
    filled = missing(place)
    return np.array(filled) / sum(filled)


@st.composite
def cases(draw, most_levels=4):
    levels = draw(st.integers(2, most_levels))
    actions = draw(st.integers(1, 6))
    row = st.lists(amounts, min_size=actions, max_size=actions)
    mass = draw(st.lists(row, min_size=levels, max_size=levels))
    steps = draw(st.lists(st.floats(0.1, 3.0), min_size=levels - 1, max_size=levels - 1))
    lowest = draw(st.floats(-5.0, 5.0))
    rewards = [lowest, *(lowest + np.cumsum(steps))]
    return mass, rewards, draw(observed), draw(batches)


@given(case=cases(), share=st.sampled_from([0.3, 1.0, 2.5]))
def test_the_mark_is_that_of_a_root_finder(case, share):
    expected = slow(*case, share)
    found = Tracking(share).probabilities(table_of(*case))
    if expected is not None:
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("count", [1e3, 1e5, 1e8, 1e11])
@pytest.mark.parametrize("decisions", [1, 50])
def test_many_observations_are_as_exact_arithmetic_has_them(count, decisions):
    value, evidence = [0.3, 0.3001, 0.2999, 0.1], [count, count, 1.1 * count, 0.01 * count]
    table = table_of(split(value, evidence), observations=1000, decisions=decisions)
    found = Tracking().probabilities(table)
    demand = slow_demand(1000, decisions)
    with localcontext() as context:
        context.prec = 50
        lower, upper = Decimal(repr(max(value))), Decimal(1)
        for _ in range(110):
            mark = (lower + upper) / 2
            missing = []
            for v, s in zip(map(Decimal, map(repr, value)), map(Decimal, evidence), strict=True):
                apart = v * (v / mark).ln() + (1 - v) * ((1 - v) / (1 - mark)).ln()
                missing.append(max(Decimal(demand) / apart - s, Decimal(0)))
            lower, upper = (mark, upper) if sum(missing) > decisions else (lower, mark)
    expected = [float(one / sum(missing)) for one in missing]
    # An action that enters or leaves does so where its value, rounded, says.
    np.testing.assert_allclose(found, expected, atol=1e-3)


@settings(max_examples=40)
@given(
    value=st.floats(0.001, 0.999),
    evidence=st.floats(0.1, 1e8),
    decisions=batches,
    actions=st.sampled_from([1, 5]),
)
def test_actions_that_are_all_the_same_are_uniform(value, evidence, decisions, actions):
    mass = split([value] * actions, [evidence] * actions)
    found = Tracking().probabilities(table_of(mass, decisions=decisions))
    np.testing.assert_allclose(found, 1 / actions, atol=1e-12)


def test_an_action_without_evidence_is_one_of_the_lowest_value():
    mass = [[5.0, 0.0, 400.0], [5.0, 0.0, 1.0]]
    found = Tracking().probabilities(table_of(mass, decisions=50))
    assert np.all(np.isfinite(found))
    assert found[0] > found[1] > found[2] == 0


def test_a_level_that_never_occurs_does_not_keep_it_from_learning():
    table = table_of([[5.0, 2.0, 1.0], [1.0, 2.0, 3.0], [0.1, 0.1, 0.1]], (0.0, 0.5, 1.0))
    found = Tracking().probabilities(table._replace(prior=np.array([0.5, 0.5, 0.0])))
    assert found[2] > found[1] >= found[0]


@pytest.mark.parametrize("count", [1e8, 1e12])
def test_with_counts_beyond_rounding_the_best_action_is_all(count):
    value = [0.2, 1 - 1e-8, 1 - 3e-8]
    found = Tracking().probabilities(table_of(split(value, [count] * 3), decisions=1))
    np.testing.assert_allclose(found, [0, 1, 0], atol=1e-6)


def test_levels_that_are_all_the_same_and_no_evidence_tell_nothing():
    table = table_of([[5.0, 5.0], [1.0, 1.0]], (2.0, 2.0))
    nothing = SampleSizes(np.zeros(2), np.array(0.0), np.array(0.0))
    for one in (table, table._replace(levels=np.array([0.0, 1.0]), sample_sizes=nothing)):
        np.testing.assert_allclose(Tracking().probabilities(one), 0.5)


def test_without_sample_sizes_it_says_what_is_missing():
    table = table_of([[1.0, 2.0], [2.0, 1.0]])._replace(sample_sizes=None)
    with raises_code("invalid-input"):
        Tracking().probabilities(table)


def test_one_of_two_actions_is_not_given_up_early():
    # 30 of 100 beside 45 % of many: the better of two arms looks so bad in one of hundred runs.
    def share(others):
        value, evidence = [0.45, 0.3, *[0.2] * others], [9900.0, 100.0, *[1e5] * others]
        return Tracking().probabilities(table_of(split(value, evidence), observations=10000))[1]

    assert share(0) > 0.1
    assert share(8) == 0
