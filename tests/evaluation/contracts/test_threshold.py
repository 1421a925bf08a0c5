import numpy as np
import pytest

from submax.evaluation.estimators import Evidence, least_error_threshold, make_off_policy


def clipping(weight, reward):
    return lambda threshold: np.minimum(weight, threshold) * reward


def error_by_hand(terms, lost):
    """s² / n + b², with b² the square of the mean that is lost, without the mean's variance."""
    count = len(terms)
    mean, mean_lost = sum(terms) / count, sum(lost) / count
    variance = sum((term - mean) ** 2 for term in terms) / count
    variance_lost = sum((one - mean_lost) ** 2 for one in lost) / count
    return variance / count + max(0.0, mean_lost**2 - variance_lost / count)


@pytest.mark.parametrize("tail", [1.1, 2.0, 5.0])
def test_the_least_error_is_that_computed_by_hand(tail, seed):
    rng = np.random.default_rng((seed, int(10 * tail)))
    weight, reward = rng.pareto(tail, 40), rng.normal(0.5, 1.0, 40)
    # Any thresholds will do, small ones as well, so that the choice is seldom the largest.
    thresholds = np.quantile(weight, np.linspace(0.05, 1.0, 20))
    kept, whole = clipping(weight, reward), weight * reward
    errors = [error_by_hand(kept(one).tolist(), (whole - kept(one)).tolist()) for one in thresholds]
    found = least_error_threshold(thresholds, kept, whole)
    assert found == thresholds[errors.index(min(errors))]


def test_a_chosen_threshold_brings_estimates_nearer_to_the_truth_where_weights_are_wild(seed):
    """Actions that are logged a hundredth as often as the policy takes them."""
    rng = np.random.default_rng(seed)
    without = {"clipped": "ips", "switch-dr": "dr", "dr-shrinkage": "dr"}
    estimators = {name: make_off_policy(name) for name in ("ips", "dr", *without)}
    logged, policy, truth = np.array([0.99, 0.01]), np.array([0.5, 0.5]), np.array([0.4, 0.6])
    guess, errors = np.array([0.45, 0.55]), {name: [] for name in estimators}
    for _ in range(400):
        a = (rng.random(100) < logged[1]).astype(int)
        reward = (rng.random(100) < truth[a]) * 1.0
        evidence = Evidence(
            reward, (policy / logged)[a], policy[a], guess[a], np.full(100, policy @ guess)
        )
        for name, one in estimators.items():
            errors[name].append((one.terms(evidence).value - policy @ truth) ** 2)
    for name, plain in without.items():
        assert np.mean(errors[name]) < np.mean(errors[plain]), name


def test_light_weights_are_not_clipped(seed):
    rng = np.random.default_rng(seed)
    weight, reward = rng.choice([0.5, 1.0, 1.5], 1000), (rng.random(1000) < 0.5) * 1.0
    for given in (weight, np.zeros(1000)):
        terms = make_off_policy("clipped").terms(Evidence(reward, given, given, given, given))
        np.testing.assert_array_equal(terms.numerator, given * reward)
        assert terms.threshold > 0
