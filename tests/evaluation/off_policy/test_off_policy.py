from itertools import product

import numpy as np
import pytest
from builtin_examples import examples_of
from refusals import raises_code
from summing import summed

from submax.evaluation.estimators import (
    OFF_POLICY,
    Evidence,
    least_error_threshold,
    make_off_policy,
)
from submax.evaluation.log import trajectory_weights

SEEDS = range(2)
EXAMPLES = list(examples_of(OFF_POLICY))


def evidence_of(seed, rows=50):
    """Evidence of arbitrary numbers: the formulas hold for all of them."""
    rng = np.random.default_rng(seed)
    probability = rng.uniform(0.0, 1.0, rows)
    weight = probability / rng.uniform(0.05, 1.0, rows)
    return Evidence(
        reward=rng.normal(1.0, 2.0, rows),
        weight=weight,
        probability=probability,
        predicted=rng.normal(1.0, 1.0, rows),
        expected=rng.normal(1.0, 1.0, rows),
        slot_weight=rng.gamma(1.0, 1.0, (rows, 3)),
        sessions=trajectory_weights(weight, np.arange(rows) // 4),
    )


def value(specification, evidence):
    return make_off_policy(specification).terms(evidence).value


def mean_over_rows(evidence, term):
    total = 0.0
    for row in zip(*(column.tolist() for column in evidence[:6]), strict=True):
        total += term(*row)
    return total / len(evidence.reward)


def ratio_over_rows(evidence, of_row):
    above = mean_over_rows(evidence, lambda r, w, p, q, e, s: of_row(w, p) * r)
    return above / mean_over_rows(evidence, lambda r, w, p, q, e, s: of_row(w, p))


BY_ROW = {
    "ips": lambda r, w, p, q, e, s: w * r,
    "dm": lambda r, w, p, q, e, s: e,
    "dr": lambda r, w, p, q, e, s: e + w * (r - q),
    "pseudo-inverse": lambda r, w, p, q, e, s: (1 - len(s) + sum(s)) * r,
}
BY_ROW_AND_THRESHOLD = {
    "clipped": lambda t, r, w, p, q, e, s: (w if w < t else t) * r,
    "switch-dr": lambda t, r, w, p, q, e, s: e + (w * (r - q) if w <= t else 0.0),
    "dr-shrinkage": lambda t, r, w, p, q, e, s: e + t * w / (w * w + t) * (r - q),
}


def test_every_estimator_is_recomputed_here():
    others = {"snips", "sndr", "replay", "per-decision", "trajectory"}
    assert {*BY_ROW, *BY_ROW_AND_THRESHOLD, *others} == set(OFF_POLICY.names())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BY_ROW)
def test_a_mean_is_its_formula_row_by_row(name, seed):
    evidence = evidence_of(seed)
    expected = mean_over_rows(evidence, BY_ROW[name])
    assert value(name, evidence) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("given", [None, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("name", BY_ROW_AND_THRESHOLD)
def test_a_given_or_chosen_threshold_is_that_of_the_formula(name, given, seed):
    evidence = evidence_of(seed)
    terms = make_off_policy({"kind": name, "threshold": given}).terms(evidence)
    used = terms.threshold
    expected = mean_over_rows(evidence, lambda *row: BY_ROW_AND_THRESHOLD[name](used, *row))
    assert terms.value == pytest.approx(expected, abs=1e-10)
    assert given is None or used == given


@pytest.mark.parametrize("seed", SEEDS)
def test_ratios_are_their_formulas_row_by_row(seed):
    evidence = evidence_of(seed)
    by_weight = ratio_over_rows(evidence, lambda w, p: w)
    by_probability = ratio_over_rows(evidence, lambda w, p: p)
    assert value("snips", evidence) == pytest.approx(by_weight, abs=1e-10)
    assert value("replay", evidence) == pytest.approx(by_probability, abs=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_sessions_are_weighted_by_the_products_of_their_rows(seed):
    evidence = evidence_of(seed)
    sums = np.zeros(4)
    for begin in range(0, 50, 4):
        weights, rewards = (one[begin : begin + 4] for one in (evidence.weight, evidence.reward))
        before, whole = 1.0, np.prod(weights)
        for weight, reward in zip(weights, rewards, strict=True):
            sums += before * weight * reward, before, whole * reward, whole
            before *= weight
    assert value("per-decision", evidence) == pytest.approx(sums[0] / sums[1], rel=1e-9)
    assert value("trajectory", evidence) == pytest.approx(sums[2] / sums[3], rel=1e-9)


def test_slots_are_needed_by_estimators_that_use_them():
    evidence = evidence_of(0)
    one_slot = evidence._replace(slot_weight=evidence.weight[:, None])
    assert value("pseudo-inverse", one_slot) == pytest.approx(value("ips", one_slot), abs=1e-10)
    with raises_code("invalid-input"):
        value("pseudo-inverse", evidence._replace(slot_weight=None))


@pytest.mark.parametrize("seed", SEEDS)
def test_doubly_robust_with_normalized_weights(seed):
    one = evidence_of(seed)._replace(bounds=(-9.0, 9.0))
    error = one.reward - one.predicted
    terms = make_off_policy("sndr").terms(one)
    expected = one.expected.mean() + one.weight @ error / one.weight.sum()
    assert terms.value == pytest.approx(expected)
    low, high = summed(terms).reach
    assert low <= terms.influence().min() <= terms.influence().max() <= high
    # With a constant model it is snips with the same influence.
    constant = one._replace(predicted=np.full(50, 0.3), expected=np.full(50, 0.3))
    normalized = make_off_policy("snips").terms(constant)
    found = make_off_policy("sndr").terms(constant)
    assert found.value == pytest.approx(normalized.value)
    assert found.influence() == pytest.approx(normalized.influence())
    # With weights of mean 1, or without any, it is dr.
    for weight in (one.weight / one.weight.mean(), np.zeros(50)):
        same = one._replace(weight=weight)
        assert value("sndr", same) == pytest.approx(value("dr", same))


@pytest.mark.parametrize("example", EXAMPLES, ids=repr)
def test_every_example_gives_a_finite_value(example):
    for seed, rows in product(SEEDS, (1, 2, 50)):
        terms = example.terms(evidence_of(seed, rows))
        assert np.isfinite(terms.value)
        assert np.all(np.isfinite(terms.influence()))


@pytest.mark.parametrize("example", EXAMPLES, ids=repr)
def test_where_the_policy_takes_nothing_that_was_logged_no_warning_is_given(example):
    evidence = evidence_of(0)
    nothing = np.zeros(50)
    evidence = evidence._replace(
        weight=nothing,
        probability=nothing,
        sessions=trajectory_weights(nothing, np.arange(50) // 4),
    )
    terms = example.terms(evidence)
    assert np.isnan(terms.value) == (not np.any(terms.denominator))


def test_an_estimator_is_made_from_its_name_or_a_table():
    for name in OFF_POLICY.names():
        made = make_off_policy(name)
        assert made.short == name
        assert make_off_policy({"kind": name}) == made
    made = make_off_policy({"kind": "switch-dr", "threshold": 3})
    assert (made.threshold, type(made.threshold)) == (3.0, float)


@pytest.mark.parametrize(
    "specification",
    [
        "snip",
        {"kind": "clippd"},
        {"kind": "clipped", "treshold": 2},
        None,
        {},
        *({"kind": "switch-dr", "threshold": wrong} for wrong in (0, float("nan"), "2", True)),
        {"kind": "clipped", "threshold": -1},
        {"kind": "dr-shrinkage", "threshold": 0},
    ],
    ids=str,
)
def test_what_cannot_be_made_is_refused(specification):
    with raises_code("invalid-input"):
        make_off_policy(specification)


def every_row(rng, slots, together=0.0, support=True):
    """All rows that a log can have, counted by their probability; and the value of a policy.

    The effects of slots add up, but for what the first two do ``together``. Without ``support`` the
    log never takes the first action; the value is then that of the other ones.
    """
    logged, policy = rng.dirichlet(np.ones(3), size=(2, 4, slots))
    effect, guess = rng.normal(size=(2, 4, slots, 3))
    if not support:
        logged = logged * [0, 1, 1] / logged[..., 1:].sum(axis=-1, keepdims=True)
    x, *choices = np.array([*product(range(4), *[range(3)] * slots)]).T
    action, slot = np.stack(choices, axis=1), np.arange(slots)
    chance, taken, earned, q = (
        table[x[:, None], slot, action] for table in (logged, policy, effect, guess)
    )
    reward = earned.sum(axis=1) + together * np.all(action[:, :2] == 0, axis=1)
    seen = chance.prod(axis=1) > 0
    columns = (
        reward,
        taken.prod(axis=1) / np.where(seen, chance.prod(axis=1), 1.0),
        taken.prod(axis=1),
        q.sum(axis=1),
        (policy * guess).sum(axis=(1, 2))[x],
        taken / np.where(seen[:, None], chance, 1.0),
    )
    found = Evidence(*(one[seen] for one in columns), counts=chance.prod(axis=1)[seen] / 4)
    return found, (taken.prod(axis=1) * reward)[seen].sum() / 4


@pytest.mark.parametrize(
    ("name", "world"),
    [
        ("ips", {"slots": 1}),
        ("dr", {"slots": 1}),
        ("ips", {"slots": 1, "support": False}),
        ("pseudo-inverse", {"slots": 3}),
        ("ips", {"slots": 3, "together": 5.0}),
        ("dr", {"slots": 3, "together": 5.0}),
    ],
)
def test_unbiased_estimators_have_the_right_expectation_whatever_the_model(name, world, rng):
    evidence, truth = every_row(rng, **world)
    assert value(name, evidence) == pytest.approx(truth)


# Thresholds


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
    whole = weight * reward

    def kept(threshold):
        return np.minimum(weight, threshold) * reward

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
