import numpy as np
import pytest
from scipy import stats

from submax.testing.assertions import goodness_of_fit


def by_likelihood_ratio(observed, expected):
    return stats.power_divergence(observed, expected, lambda_="log-likelihood").pvalue


def test_it_is_the_likelihood_ratio_test_where_every_cell_is_large():
    drawn = np.repeat(np.arange(4), [30, 25, 20, 25])
    probabilities = np.array([0.25, 0.25, 0.2, 0.3])
    expected = by_likelihood_ratio([30, 25, 20, 25], 100 * probabilities)
    assert np.isclose(goodness_of_fit(drawn, probabilities), expected)


def test_right_probabilities_give_uniform_p_values(seed):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(6))
    p_values = [
        goodness_of_fit(rng.choice(6, size=2000, p=probabilities), probabilities)
        for _ in range(300)
    ]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("often", [5, 10, 50, 500])
def test_false_alarms_are_as_rare_as_the_p_value_says(often):
    draws, limit = 1200, 1e-6
    probabilities = np.array([often / draws, 1 - often / draws])
    alarms = [
        count
        for count in range(draws + 1)
        if goodness_of_fit(np.arange(draws) >= count, probabilities) < limit
    ]
    chance = stats.binom.pmf(alarms, draws, often / draws).sum()
    assert 0.2 * limit < chance < 2 * limit
