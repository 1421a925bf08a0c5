import numpy as np
import pytest
from refusals import raises_code

from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.contracts.threshold import (
    candidate_thresholds,
    least_error_threshold,
    slope_threshold,
)
from submax.evaluation.off_policy import make_off_policy


def clipping(weight, reward):
    def parts(threshold):
        kept = np.minimum(weight, threshold) * reward
        return kept, weight * reward - kept

    return parts


def chosen(weight, reward):
    return least_error_threshold(candidate_thresholds(weight), clipping(weight, reward))


def error_by_hand(terms, lost):
    """s² / n + b², with b² the square of the mean that is lost, without the mean's variance."""
    count = len(terms)
    mean, mean_lost = sum(terms) / count, sum(lost) / count
    variance = sum((term - mean) ** 2 for term in terms) / count
    variance_lost = sum((one - mean_lost) ** 2 for one in lost) / count
    return variance / count + max(0.0, mean_lost**2 - variance_lost / count)


@pytest.mark.parametrize("rows", [1, 2, 3, 50, 5000])
def test_candidates_are_sorted_and_positive_and_end_with_the_largest(rows, seed):
    rng = np.random.default_rng((seed, rows))
    weight = rng.pareto(1.5, rows) * (rng.random(rows) < 0.7)
    weight[0] = 0.1
    found = candidate_thresholds(weight)
    assert np.all(np.diff(found) > 0)
    assert found[0] > 0
    assert found[-1] == weight.max()
    assert found[0] >= np.median(weight[weight > 0])


def test_candidates_draw_closer_toward_the_largest():
    weight = np.arange(1.0, 1001.0)
    steps = np.diff(candidate_thresholds(weight))
    assert len(steps) == 23
    assert np.all(np.diff(steps[:-1]) < 0)


def test_equal_weights_have_one_candidate():
    assert candidate_thresholds(np.full(10, 2.5)) == [2.5]


def test_weights_of_zero_have_a_candidate_too():
    found = candidate_thresholds(np.zeros(10))
    assert found.shape == (1,)
    assert found[0] > 0
    assert chosen(np.zeros(10), np.ones(10)) == found[0]


@pytest.mark.parametrize("tail", [1.1, 2.0, 5.0])
def test_the_least_error_is_that_computed_by_hand(tail, seed):
    rng = np.random.default_rng((seed, int(10 * tail)))
    weight, reward = rng.pareto(tail, 40), rng.normal(0.5, 1.0, 40)
    # Any thresholds will do, small ones as well, so that the choice is seldom the largest.
    thresholds = np.quantile(weight, np.linspace(0.05, 1.0, 20))
    parts = clipping(weight, reward)
    errors = [error_by_hand(*(part.tolist() for part in parts(one))) for one in thresholds]
    assert least_error_threshold(thresholds, parts) == thresholds[errors.index(min(errors))]


def test_nothing_lost_and_the_same_variance_leaves_the_first():
    assert (
        least_error_threshold(np.array([2.0, 3.0, 4.0]), lambda _: (np.ones(5), np.zeros(5))) == 2.0
    )


def test_of_heavy_tails_and_few_rows_the_largest_weights_are_clipped():
    weight = 1.2 ** np.arange(30)
    assert chosen(weight, np.ones(30)) < weight.max()


def test_light_weights_stay_as_they_are(seed):
    rng = np.random.default_rng(seed)
    weight = rng.choice([0.5, 1.0, 1.5], 1000)
    reward = (rng.random(1000) < 0.5) * 1.0
    assert chosen(weight, reward) == weight.max()


@pytest.mark.parametrize("name", ["clipped", "switch-dr", "dr-shrinkage"])
def test_a_chosen_threshold_brings_estimates_nearer_to_the_truth_where_weights_are_wild(name, seed):
    """Actions that are logged a hundredth as often as the policy takes them."""
    rng = np.random.default_rng(seed)
    plain = make_off_policy("ips" if name == "clipped" else "dr")
    logged, policy, truth = np.array([0.99, 0.01]), np.array([0.5, 0.5]), np.array([0.4, 0.6])
    errors = []
    for _ in range(400):
        a = (rng.random(100) < logged[1]).astype(int)
        reward = (rng.random(100) < truth[a]) * 1.0
        guess = np.array([0.45, 0.55])
        evidence = Evidence(
            reward, (policy / logged)[a], policy[a], guess[a], np.full(100, policy @ guess)
        )
        found = [one.terms(evidence).value for one in (plain, make_off_policy(name))]
        errors.append([(one - policy @ truth) ** 2 for one in found])
    before, after = np.mean(errors, axis=0)
    assert after < before


def test_slope_takes_the_smallest_threshold_that_agrees_with_all_larger_ones(seed):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=400)
    # Thresholds 4, 2 and 1: the spread is the threshold, and only 1 has a bias.
    biases = {4.0: 0.0, 2.0: 0.0, 1.0: 5.0}

    def terms_and_lost(threshold):
        terms = threshold * noise + biases[threshold]
        return terms, np.zeros(400)

    assert slope_threshold(np.array([1.0, 2.0, 4.0]), terms_and_lost) == 2.0
    biases[1.0] = 0.0
    assert slope_threshold(np.array([1.0, 2.0, 4.0]), terms_and_lost) == 1.0


def test_slope_needs_no_estimate_of_the_bias(seed, evidence_of):
    evidence = evidence_of(seed)
    for kind in ("clipped", "switch-dr", "dr-shrinkage"):
        terms = make_off_policy({"kind": kind, "tuning": "slope"}).terms(evidence)
        assert np.isfinite(terms.value)
        # All thresholds agree for equal weights, and the smallest one is taken.
        assert terms.threshold > 0
    with raises_code("invalid-input"):
        make_off_policy({"kind": "clipped", "tuning": "slpe"})
