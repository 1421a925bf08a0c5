import numpy as np
import pytest
from scipy import integrate, stats

from submax.research.rivals.bayesian_arms import least_information_ratio, regret_and_information


def ratio(listed, regret, information):
    return (listed @ regret) ** 2 / (listed @ information)


@pytest.mark.parametrize("arms", [1, 2, 3, 8, 40])
def test_no_mixture_of_two_arms_has_a_lower_ratio(arms, seed):
    rng = np.random.default_rng((seed, arms))
    for _ in range(20):
        regret = rng.random(arms) * rng.integers(0, 2, arms)
        information = rng.random(arms) ** 3 + 1e-9
        found = least_information_ratio(regret, information)
        assert found.sum() == pytest.approx(1)
        assert np.all(found >= 0)
        assert np.count_nonzero(found) <= 2
        best = ratio(found, regret, information)
        share = np.linspace(0, 1, 41)[:, None, None]
        mixed_regret = (1 - share) * regret[:, None] + share * regret
        mixed_information = (1 - share) * information[:, None] + share * information
        assert best <= (mixed_regret**2 / mixed_information).min() * (1 + 1e-12)


def test_without_information_the_arm_with_the_least_regret_is_taken():
    found = least_information_ratio(np.array([0.2, 0.1, 0.1]), np.zeros(3))
    assert found.tolist() == [0.0, 0.5, 0.5]


def test_regret_and_information_of_draws_are_conditional_means(seed):
    drawn = np.random.default_rng(seed).random((50, 4))
    regret, information = regret_and_information(drawn)
    best = drawn.argmax(axis=1)
    for arm in range(4):
        mean = drawn[:, arm].mean()
        assert regret[arm] == pytest.approx(np.mean(drawn.max(axis=1)) - mean)
        expected = sum(
            np.mean(best == star) * (drawn[best == star, arm].mean() - mean) ** 2
            for star in set(best.tolist())
        )
        assert information[arm] == pytest.approx(expected)


def test_many_draws_agree_with_integrals_over_two_arms(seed):
    """E[θ_1 | the first arm is best] and E[max] by quadrature, within six standard errors."""
    one, other = stats.beta(3, 5), stats.beta(2, 2)
    p_first = integrate.quad(lambda x: one.pdf(x) * other.cdf(x), 0, 1)[0]
    given_first = integrate.quad(lambda x: x * one.pdf(x) * other.cdf(x), 0, 1)[0] / p_first
    given_second = (one.mean() - p_first * given_first) / (1 - p_first)
    expected = (
        p_first * (given_first - one.mean()) ** 2 + (1 - p_first) * (given_second - one.mean()) ** 2
    )
    rng = np.random.default_rng(seed)
    found = [
        regret_and_information(
            np.stack([rng.beta(3, 5, size=4000), rng.beta(2, 2, size=4000)], axis=1)
        )[1][0]
        for _ in range(40)
    ]
    error = np.std(found, ddof=1) / np.sqrt(40)
    # The estimate of a variance of means is biased upwards by about 1 / draws.
    assert abs(np.mean(found) - expected) < 6 * error + 2 * one.var() / 4000
