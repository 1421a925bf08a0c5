"""The doubly robust estimator with normalized weights."""

import numpy as np
import pytest

from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.off_policy import make_off_policy


def evidence(seed: int, model: float | None = None) -> Evidence:
    rng = np.random.default_rng(seed)
    predicted = rng.random(200) if model is None else np.full(200, model)
    return Evidence(
        reward=(rng.random(200) < 0.4) * 1.0,
        weight=rng.exponential(size=200),
        probability=rng.random(200),
        predicted=predicted,
        expected=rng.random(200) if model is None else predicted,
        bounds=(0.0, 1.0),
    )


def test_the_formula(seed):
    one = evidence(seed)
    error = one.reward - one.predicted
    expected = one.expected.mean() + one.weight @ error / one.weight.sum()
    terms = make_off_policy("sndr").terms(one)
    assert terms.value == pytest.approx(expected)
    low, high = terms.reach
    assert low <= terms.numerator.min()
    assert terms.numerator.max() <= high


def test_with_a_constant_model_it_is_snips_with_the_same_influence(seed):
    one = evidence(seed, model=0.3)
    normalized = make_off_policy("snips").terms(one)
    found = make_off_policy("sndr").terms(one)
    assert found.value == pytest.approx(normalized.value)
    assert found.numerator == pytest.approx(normalized.influence())


def test_with_weights_of_mean_one_it_is_dr(seed):
    one = evidence(seed)
    one = one._replace(weight=one.weight / one.weight.mean())
    assert make_off_policy("sndr").terms(one).value == pytest.approx(
        make_off_policy("dr").terms(one).value
    )


def test_without_any_weight_it_is_dr():
    nothing = evidence(0)._replace(weight=np.zeros(200))
    assert make_off_policy("sndr").terms(nothing).value == nothing.expected.mean()
