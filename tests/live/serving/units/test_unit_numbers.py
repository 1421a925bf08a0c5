import math

import numpy as np

from submax.live.serving.units import unit_numbers
from submax.live.serving.units.action_codes import action_codes
from submax.live.serving.units.unit_numbers import UnitNumbers

UNITS = [f"visitor-{number}" for number in range(5000)]
DEVIATIONS = 4.5
"""Standard deviations of a tolerance: with some dozens of comparisons, 1 in 1000 runs fails."""


def test_numbers_of_a_unit_never_change():
    # Stored nowhere, they must be the same in every process and version of submax.
    assert UnitNumbers("homepage", 7).uniform("holdout", "visitor-17") == 0.3087117173395267


def test_uniform_numbers_are_uniform_and_independent_of_each_other(seed):
    numbers = UnitNumbers("homepage", seed)
    first = np.array([numbers.uniform("holdout", unit) for unit in UNITS])
    second = np.array([numbers.uniform("control", unit) for unit in UNITS])
    other = np.array([UnitNumbers("cart", seed).uniform("holdout", unit) for unit in UNITS])
    error = math.sqrt(0.1 * 0.9 / len(UNITS))
    for low in np.arange(0, 1, 0.1):
        share = ((first >= low) & (first < low + 0.1)).mean()
        assert abs(share - 0.1) < DEVIATIONS * error
    for one in (second, other):
        assert abs(np.corrcoef(first, one)[0, 1]) < DEVIATIONS / math.sqrt(len(UNITS))


def test_the_first_arrival_has_the_probability_of_its_rate(seed):
    numbers = UnitNumbers("homepage", seed)
    eligible = ((0, 2), (1, 3, 4))
    probabilities = np.array([0.05, 0.3, 0.1, 0.25, 0.2, 0.1])
    codes = action_codes(eligible)
    chosen = np.array([numbers.first_arrival("v1", unit, codes, probabilities) for unit in UNITS])
    for index, probability in enumerate(probabilities):
        error = math.sqrt(probability * (1 - probability) / len(UNITS))
        assert abs((chosen == index).mean() - probability) < DEVIATIONS * error
    # In another period units are drawn anew.
    later = np.array([numbers.first_arrival("v2", unit, codes, probabilities) for unit in UNITS])
    same = float((probabilities**2).sum())
    assert abs((chosen == later).mean() - same) < DEVIATIONS * math.sqrt(same / len(UNITS))


def test_few_and_many_numbers_are_computed_alike(seed, monkeypatch):
    numbers, rng = UnitNumbers("homepage", seed), np.random.default_rng(seed)
    codes = action_codes((tuple(range(20)),))
    rates = np.where(rng.random((50, 20)) < 0.3, 0.0, rng.random((50, 20)))
    few = [
        numbers.first_arrival("v1", unit, codes, one)
        for unit, one in zip(UNITS, rates, strict=False)
    ]
    monkeypatch.setattr(unit_numbers, "FEW", 0)
    many = [
        numbers.first_arrival("v1", unit, codes, one)
        for unit, one in zip(UNITS, rates, strict=False)
    ]
    assert few == many
    assert all(one[index] > 0 for one, index in zip(rates, few, strict=True))


def test_codes_depend_on_the_choices_of_an_action_only():
    few, many = action_codes(((0, 2), (1,))), action_codes(((0, 1, 2), (0, 1)))
    assert few[0] == many[1]
    assert few[1] == many[5]
    assert len(set(action_codes((tuple(range(40)), tuple(range(40)))).tolist())) == 1600
