"""Which features of contexts are chosen, and what is believed about contexts."""

import itertools
import math

import numpy as np
import pytest
from refusals import raises_code
from scipy import optimize
from scipy.cluster.vq import kmeans2

from submax.models.regression import bayesian as posterior
from submax.models.regression.bayesian import (
    ALIKE,
    BATCHED_WIDTH,
    COMMON,
    EXPECTED_SHARE,
    KINDS,
    LEAST_NOISE,
    OWN,
    RANGE,
    Posterior,
    PosteriorCovariance,
    Prior,
    PriorStructure,
    Sums,
    fitted,
    moments_of,
)
from submax.models.regression.context_belief import (
    FEWEST_ROWS,
    LENGTHS,
    LIKE_UNIFORM,
    USUAL_LENGTH,
    BeliefSettings,
    ContextBelief,
    RegressionRows,
    SampledRows,
    best_map,
)
from submax.models.regression.features import (
    CONSTANT,
    FARTHEST,
    JITTER,
    K_MEANS_STEPS,
    KERNEL,
    LINEAR,
    chosen_landmarks,
    new_map,
    standardization,
    standardized,
)
from submax.models.regression.slot_belief import SlotBelief, SlotMap, SlotSettings
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

TWO_ACTIONS = BeliefSettings(actions=2, features=20, rows=1000, draws=4, width=1.0, discount=1.0)


def sums_of(rows, feature_map, actions):
    """The sums of all rows at once, with rewards relative to their mean."""
    sums = Sums.empty(actions, feature_map.width, np.average(rows.reward, weights=rows.weight))
    return sums.add(feature_map.rows(rows.context), rows.number, rows.reward, rows.weight)


def rows_of(context, number, reward):
    count = len(reward)
    return RegressionRows(context, number, reward, np.full(count, np.nan), np.ones(count))


def wavy_rows(count, seed, frequency=3.0, width=1):
    """The reward of an action is a wave of the first number, with some noise."""
    rng = np.random.default_rng(np.append(seed, 3))
    context, number = rng.uniform(-2, 2, size=(count, width)), rng.integers(2, size=count)
    wave = np.sin(frequency * context[:, 0]) * np.where(number == 0, 1.0, -1.0)
    return rows_of(context, number, wave + 0.1 * rng.normal(size=count))


def chosen(rows, settings=TWO_ACTIONS, seed=0):
    return best_map(rows, 0.0, None, settings, np.random.default_rng(seed))[0]


def test_a_fast_wave_has_short_kernels_and_a_slow_one_long_ones(seed):
    assert chosen(wavy_rows(300, seed, frequency=6.0)).length == min(LENGTHS)
    # A slow wave had the longest kernels in 91 of 100 samples: in 12 of them hardly ever in fewer
    # than 7, with a probability of 1e-5.
    slow = [chosen(wavy_rows(300, (seed, number), frequency=0.8)) for number in range(12)]
    assert sum(one.length == max(LENGTHS) for one in slow) >= 7


def test_a_number_that_decides_the_reward_is_more_relevant_and_few_rows_have_the_usual_length(seed):
    found = chosen(wavy_rows(500, seed, width=3)).reach
    assert found[0] > 1.5 * found[1:].max()
    assert chosen(wavy_rows(FEWEST_ROWS - 1, seed)).length == USUAL_LENGTH


SETTINGS = BeliefSettings(actions=3, features=12, rows=100, draws=8, width=1.0, discount=1.0)
"""The map is made from up to 100 rows, so that the tests see both before and after."""


def some_rows(count, seed, width=2):
    rng = np.random.default_rng((seed, 17))
    context, number = rng.normal(size=(count, width)), rng.integers(3, size=count)
    reward = np.sin(context[:, 0]) * (number - 1.0) + 0.3 * rng.normal(size=count)
    return RegressionRows(context, number, reward, np.full(count, -np.log(3)), np.ones(count))


def learned(rows, settings, seed, size):
    rng = np.random.default_rng(seed)
    belief = ContextBelief.unlearned(rows.context.shape[1])
    for begin in range(0, len(rows.reward), size):
        belief = belief.learned(rows.taken(slice(begin, begin + size)), settings, rng)
    return belief


@pytest.mark.parametrize("size", [1, 60, 250])
@pytest.mark.parametrize("discount", [1.0, 0.99])
def test_the_sums_are_those_of_all_rows_under_the_map_but_the_waiting_ones(size, discount, seed):
    settings = BeliefSettings(3, 12, 100, 8, 1.0, discount)
    rows = some_rows(250, seed)
    belief = learned(rows, settings, seed, size)
    waiting = 0 if belief.waiting is None else len(belief.waiting.reward)
    assert waiting < 0.05 * 250
    faded = rows._replace(weight=discount ** np.arange(249.0, -1.0, -1.0))
    faded = faded.taken(slice(0, 250 - waiting))
    expected = sums_of(faded, belief.feature_map, 3)
    assert belief.sums.weight == pytest.approx(expected.weight)
    np.testing.assert_allclose(belief.sums.settled(0.0).gram, expected.gram, rtol=1e-8, atol=1e-9)
    for mine, theirs in zip(belief.sums.centred(0.3), expected.centred(0.3), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)


def test_a_single_row_waits_and_learning_is_the_same_as_with_the_rows_together(seed):
    rows, rng = some_rows(301, seed), np.random.default_rng(seed)
    before = learned(rows.taken(slice(0, 280)), SETTINGS, seed, 280)
    one = before.learned(rows.taken(slice(280, 281)), SETTINGS, rng)
    assert one.sums is before.sums
    assert one.coefficients is before.coefficients
    by_one = one
    for number in range(281, 301):
        by_one = by_one.learned(rows.taken(slice(number, number + 1)), SETTINGS, rng)
        if by_one.waiting is None:
            break
    together = before.learned(rows.taken(slice(280, number + 1)), SETTINGS, rng)
    np.testing.assert_allclose(by_one.coefficients, together.coefficients)


def variance_of(posterior, features, shares=None):
    """The posterior variance of φ·Σ_k s_k θ_k, by solving for each row s of shares: ``[n, K]``.

    By default each row is that of one regression.
    """
    scaled, regressions = features * posterior.covariance.unit, len(posterior.mean)
    columns = []
    for row in np.eye(regressions) if shares is None else shares:
        response = row[:, None] * scaled[:, None]
        solved = posterior.covariance.applied(posterior.structure, response)
        columns.append(np.sum(solved * response, axis=(1, 2)))
    return np.stack(columns, axis=1)


def test_the_mean_and_the_draws_are_those_of_the_posterior(seed):
    rows = some_rows(300, seed)
    settings = BeliefSettings(3, 12, 100, 4000, 0.5, 1.0)
    belief = learned(rows, settings, seed, 300)
    structure = settings.prior_structure(belief.feature_map.groups)
    posterior = Posterior.of(belief.sums, structure, belief.prior, belief.centre)
    asked = rows.context[:5]
    features = belief.feature_map.rows(asked)
    expected = features @ posterior.coefficients.T + belief.centre
    np.testing.assert_allclose(belief.mean(belief.feature_map.raw(asked)), expected, rtol=1e-6)
    # Relative to their mean over the actions.
    drawn, expected = belief.contrasts(asked), expected - expected.mean(axis=1, keepdims=True)
    variance = 0.25 * variance_of(posterior, features, np.eye(3) - 1 / 3)
    assert np.all(np.abs(drawn.mean(axis=1) - expected) < 7 * np.sqrt(variance / 4000))
    np.testing.assert_allclose(drawn.var(axis=1), variance, rtol=7 * (2 / 4000) ** 0.5)


@pytest.mark.parametrize("value", [0.0, -1e6 / 3])
def test_equal_rewards_teach_nothing(value, seed):
    rows = some_rows(250, seed)
    belief = learned(rows._replace(reward=np.full(250, value)), SETTINGS, seed, 20)
    assert belief.feature_map is belief.sums is belief.coefficients is None


def test_rows_before_the_first_other_reward_are_counted(seed):
    rows = some_rows(401, seed)
    belief = learned(rows._replace(reward=np.append(np.zeros(400), 1.0)), SETTINGS, seed, 50)
    assert belief.sums.weight == pytest.approx(401)


@pytest.mark.parametrize(
    ("unit", "offset", "width"), [(1e-3, 0.0, 1e-9), (1e6, 0.0, 1e9), (1e-2, 1e6, 1.0)]
)
def test_units_change_nothing(unit, offset, width, seed):
    rows = some_rows(300, seed)
    changed = rows._replace(context=rows.context * width, reward=offset + unit * rows.reward)
    one = learned(rows, SETTINGS, seed, 60)
    other = learned(changed, SETTINGS, seed, 60)
    found = other.contrasts(rows.context[:9] * width) / unit
    np.testing.assert_allclose(found, one.contrasts(rows.context[:9]), rtol=1e-4, atol=1e-4)


def test_rows_of_likely_actions_do_not_move_the_centre(seed):
    rows = some_rows(90, seed)
    likely = np.arange(90) % 3 == 0
    chance = np.where(
        likely, 0.99 * LIKE_UNIFORM / 3 + 0.1, np.where(np.arange(90) % 3 == 1, 0.2, 0.5)
    )
    belief = learned(rows._replace(log_prob=np.log(chance)), SETTINGS, seed, 30)
    weight = np.where(likely, 0.0, 1 / chance)
    assert belief.centre == pytest.approx(np.average(rows.reward, weights=weight))
    # Without propensities it is the mean reward.
    unknown = learned(rows._replace(log_prob=np.full(90, np.nan)), SETTINGS, seed, 30)
    assert unknown.centre == pytest.approx(rows.reward.mean())


def test_a_prior_follows_rewards_that_change_while_old_rows_fade(seed):
    rows = some_rows(800, seed)
    louder = np.where(np.arange(800) < 400, 1.0, 10.0)
    settings = BeliefSettings(3, 12, 100, 8, 1.0, 0.98)
    belief = learned(rows._replace(reward=rows.reward * louder), settings, seed, 20)
    alone = learned(rows.taken(slice(400, None)), settings, seed, 20)
    # Weights of 0.98^k are worth 99 rows, and a variance of n normal numbers has the relative error
    # sqrt(2 / n); the two maps differ. A prior that stays behind is wrong by a factor of 100.
    error = np.sqrt(2 * 2 / 99)
    assert abs(np.log(belief.prior.noise / (100 * alone.prior.noise))) < 5 * error


def test_a_belief_for_deciding_has_the_same_draws_and_refuses_to_learn(seed):
    rows = some_rows(120, seed)
    belief = learned(rows, SETTINGS, seed, 60)
    stored = belief.for_deciding()
    np.testing.assert_array_equal(stored.contrasts(rows.context), belief.contrasts(rows.context))
    assert stored.feature_map.landmarks.size
    assert not stored.feature_map.whitening.size
    with raises_code("invalid-input"):
        stored.learned(rows, SETTINGS, np.random.default_rng(seed))


# Features of contexts: numbers, kernels at landmarks, and how numbers are standardized


def contexts(seed, rows=60, width=3):
    rng = np.random.default_rng((seed, 3))
    return rng.normal(size=(rows, width)) * 2.0 + 5.0, rng


def map_of(context, most, rng, length=0.7, **options):
    return new_map(context, np.ones(len(context)), most, rng, **options).of_length(length)


def kernel(reached, landmarks):
    """exp(−|reached − landmark|² / 2), one pair at a time."""
    return np.array(
        [[math.exp(-sum((one - other) ** 2) / 2) for other in landmarks] for one in reached]
    )


def test_features_are_those_of_the_definition(seed):
    context, rng = contexts(seed)
    found = map_of(context, 20, rng).with_relevance(np.array([0.5, 1.0, 1.5]))
    assert found.width == 20
    assert found.groups.tolist() == [CONSTANT] + [LINEAR] * 3 + [KERNEL] * 16
    asked = context[:7] + 0.1
    assert standardized(np.full(3, 1e9), found.shift, found.scale).tolist() == [FARTHEST] * 3
    z = (asked - context.mean(axis=0)) / context.std(axis=0)
    among = kernel(found.landmarks, found.landmarks) + JITTER * np.eye(16)
    seen = kernel(z * np.array([0.5, 1.0, 1.5]) / (0.7 * 3**0.5), found.landmarks)
    rows = found.rows(asked)
    np.testing.assert_allclose(rows[:, 0], 1.0)
    np.testing.assert_allclose(rows[:, 1:4], z / 3**0.5)
    # The products of features are those of a Gaussian process on the landmarks.
    products = seen @ np.linalg.solve(among, seen.T)
    np.testing.assert_allclose(rows[:, 4:] @ rows[:, 4:].T, products, atol=1e-8)
    np.testing.assert_allclose(found.raw(asked)[:, 4:], seen, atol=1e-12)
    alone = [found.raw_alone(one) for one in asked]
    np.testing.assert_allclose(alone, found.raw(asked), rtol=1e-12)
    coefficients = rng.normal(size=(2, 4, 20))
    products = found.for_raw(coefficients) @ found.raw(context).T
    expected = coefficients @ found.rows(context).T
    np.testing.assert_allclose(products, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("width", [1, 3, 70])
@pytest.mark.parametrize("regressions", [1, 4])
def test_the_sensitivity_is_that_of_finite_differences(width, regressions, seed):
    context, rng = contexts(seed, width=width)
    found = map_of(context, 20, rng).with_relevance(rng.uniform(0.5, 1.5, size=width))
    assert (found.projection is not None) == (width == 70)
    coefficients = rng.normal(size=(regressions, found.width))
    # A difference in the context is one in the standardized numbers divided by the scale.
    asked = context.mean(axis=0) + 0.5 * (context[:9] - context.mean(axis=0))
    step, expected = 1e-5, np.empty(width)
    for number in range(width):
        moved = step / found.scale[number] * (np.arange(width) == number)
        change = found.rows(asked + moved) - found.rows(asked - moved)
        slope = change @ coefficients.T / (2 * step)
        own = slope - slope.mean(axis=1, keepdims=True) if regressions > 1 else slope
        expected[number] = np.mean(own**2)
    np.testing.assert_allclose(found.sensitivity(asked, coefficients), expected, rtol=1e-3)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9])
def test_constant_numbers_are_not_seen(value, seed):
    context, _ = contexts(seed)
    with_constant = np.column_stack([context[:, 0], np.full(60, value)])
    found = map_of(with_constant, 20, np.random.default_rng(seed))
    assert found.scale[1] == 0
    other = np.column_stack([context[:, 0], np.full(60, 123.0)])
    np.testing.assert_array_equal(found.rows(with_constant), found.rows(other))


def test_equal_rows_and_no_context_leave_the_constant(seed):
    found = map_of(np.full((40, 3), 0.1), 20, np.random.default_rng(seed))
    assert len(found.landmarks) == 0
    rows = found.rows(np.full((2, 3), 5.0))
    assert rows.tolist() == [[1.0, 0.0, 0.0, 0.0]] * 2
    without = map_of(np.zeros((10, 0)), 20, np.random.default_rng(seed))
    assert without.rows(np.zeros((3, 0))).tolist() == [[1.0]] * 3


def test_wide_contexts_are_linear_features_and_wider_ones_are_projected(seed):
    context = np.random.default_rng(seed).standard_normal((200, 400))
    found = new_map(context, np.ones(200), 288, np.random.default_rng(seed))
    assert found.projection is None
    assert (len(found.landmarks), found.width) == (48, 449)
    context, rng = contexts(seed, rows=400, width=1000)
    found = map_of(context, 100, rng)
    assert found.width == 1 + 300 + 48
    assert np.count_nonzero(found.groups == LINEAR) == 300
    z, linear = standardized(context, found.shift, found.scale), found.rows(context)[:, 1:301]
    ratio = np.sum(linear**2, axis=1) / np.mean(z**2, axis=1)
    # Each is χ² with 300 degrees of freedom divided by 300.
    assert np.all(np.abs(ratio - 1) < 7 * (2 / 300) ** 0.5)


@pytest.mark.parametrize(("most", "linear"), [(100, 30), (31, 30), (20, 19)])
def test_without_kernels_the_linear_part_takes_all_features(most, linear, seed):
    context, rng = contexts(seed, width=30)
    found = map_of(context, most, rng, kernels=False)
    assert found.width == 1 + linear
    assert (found.projection is None) == (linear == 30)


def test_few_different_points_are_the_landmarks(seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(3, size=(200, 2)).astype(float)
    found = chosen_landmarks(points, 9, rng)
    assert sorted(found.tolist()) == [[a, b] for a in (0.0, 1.0, 2.0) for b in (0.0, 1.0, 2.0)]


def test_landmarks_are_those_of_k_means(seed):
    points = np.random.default_rng(seed).normal(size=(300, 4))
    rng = np.random.default_rng((seed, 1))
    start = points[np.random.default_rng((seed, 1)).permutation(300)][:12]
    expected, _ = kmeans2(points, start, iter=K_MEANS_STEPS, minit="matrix")
    np.testing.assert_allclose(chosen_landmarks(points, 12, rng), expected, atol=1e-12)


def normal(seed, rows=500):
    rng = np.random.default_rng((seed, 5))
    return rng.normal(40.0, 10.0, size=(rows, 2)), rng


@pytest.mark.parametrize("absurd", [1e6, -1e6, 1e300])
@pytest.mark.parametrize("rows", [30, 500])
def test_one_absurd_value_does_not_hide_the_others(absurd, rows, seed):
    context, rng = normal(seed, rows)
    context[rng.integers(rows), 0] = absurd
    _, scale = standardization(context, np.ones(rows))
    # One value counts as at most 20 usual distances, which are below 0.8 deviations each.
    most = np.sqrt(1 + 20**2 / rows) * 1.5
    assert 1 / (10 * most) < scale[0] < 1.5 / 10


def test_numbers_without_outliers_and_rare_categories_have_their_mean_and_deviation(seed):
    plain, rng = normal(seed, 400)
    context = np.concatenate([np.zeros((400, 2)), plain], axis=1)
    context[rng.choice(400, 3, replace=False), 0] = 1.0
    context[rng.choice(400, 60, replace=False), 1] = 1.0
    shift, scale = standardization(context, np.ones(400))
    np.testing.assert_allclose(shift, context.mean(axis=0))
    np.testing.assert_allclose(scale, 1 / context.std(axis=0))


def test_a_row_of_weight_two_counts_twice(seed):
    context, rng = normal(seed, 60)
    context[0] = 1e4
    weight = rng.integers(1, 4, size=60)
    one = standardization(context, weight.astype(float))
    other = standardization(np.repeat(context, weight, axis=0), np.ones(weight.sum()))
    np.testing.assert_allclose(one, other)


# Fitting

STEP = 1e-5


def evidence(case, logarithms):
    """The log-evidence for logarithms of the noise and of all variances."""
    variance = np.exp(logarithms[1:]).reshape(-1, KINDS)
    prior = Prior(float(np.exp(logarithms[0])), variance)
    return Posterior.of(case.sums, case.structure, prior, case.centre)


def logarithms(prior):
    return np.log(np.append(prior.noise, prior.variance))


def gradient(posterior):
    """Derivatives of the log-evidence by the logarithms of the noise and of each variance."""
    moments, prior = moments_of(posterior), posterior.prior
    groups = len(prior.variance)
    dimensions = posterior.structure.dimensions(groups)
    ratio = prior.variance / prior.variance[:, OWN, None]
    by_variance = ((moments.squares + moments.variances) / ratio - dimensions) / 2
    left = moments.residual / prior.noise + moments.used
    return (left - posterior.sums.weight) / 2, by_variance


def test_the_gradient_is_that_of_finite_differences(case):
    start = logarithms(case.prior)
    found = np.append(*gradient(case.posterior))
    for number, derivative in enumerate(found):
        step = STEP * (np.arange(len(start)) == number)
        higher = evidence(case, start + step).log_evidence
        lower = evidence(case, start - step).log_evidence
        assert derivative == pytest.approx((higher - lower) / (2 * STEP), abs=1e-5)


def penalized(case, point):
    """The log-evidence plus the log-densities of the variances, and its derivatives.

    The logarithm of a variance v has the density of an inverse gamma distribution of v, with shape
    1/2 and scale s/2: it is −(log v + s / v) / 2 but for a constant.
    """
    posterior, logarithm = evidence(case, point), point[1:]
    expected = EXPECTED_SHARE * case.sums.variance * np.exp(-logarithm)
    # Variances of kinds that no direction has do not count.
    groups = len(case.prior.variance)
    counts = np.ravel(case.structure.dimensions(groups)) > 0
    value = posterior.log_evidence - np.sum(counts * (logarithm + expected)) / 2
    slope = np.append(*gradient(posterior))
    slope[1:] += counts * (expected - 1) / 2
    return value, slope


def test_many_steps_from_anywhere_end_where_the_penalized_evidence_is_highest(shared_case):
    case = shared_case

    def loss(point):
        value, slope = penalized(case, point)
        return -value, -slope

    reach = case.sums.variance * np.array([1 / RANGE, RANGE])
    bounds = [np.log(reach)] * (1 + case.prior.variance.size)
    best = optimize.minimize(loss, logarithms(case.prior), jac=True, bounds=bounds)
    for scale in (1e-3, 1.0, 1e3):
        start = Prior.vague(3, scale * case.sums.variance)
        found = fitted(case.sums, case.structure, start, case.centre, steps=500)
        value, slope = penalized(case, logarithms(found.prior))
        assert value == pytest.approx(-best.fun, abs=0.01)
        np.testing.assert_allclose(slope, 0.0, atol=0.01)


def test_the_constants_of_few_actions_can_be_learned_after_a_start_without_differences(seed):
    """Without a prior on the variance it would stay near zero, and the constants with it."""
    rng = np.random.default_rng(seed)
    features, structure = np.ones((4000, 1)), PriorStructure.sharing(np.array([0]), 3)
    number = np.arange(4000) % 3
    equal = (rng.random(4000) < 0.5).astype(float)
    better = (rng.random(4000) < 0.5 + 0.1 * (number == 2)).astype(float)
    first = Sums.empty(3, 1, 0.5).add(features, number, equal, np.ones(4000))
    start = fitted(first, structure, Prior.vague(1, 0.25), 0.5, steps=50).prior
    both = first.add(features, number, better, np.ones(4000))
    found = fitted(both, structure, start, 0.5, steps=1).coefficients[:, 0]
    # The mean of the last action is 0.05 above that of the others, ± 0.5 / √2667 for each mean.
    assert found[2] - found[:2].mean() > 0.05 - 6 * 0.5 * (1.5 / 2667) ** 0.5


def test_rewards_without_noise_leave_a_little(seed):
    rng = np.random.default_rng(seed)
    features = np.column_stack([np.ones(50), rng.normal(size=50)])
    reward, number = features @ [2.0, 3.0], np.zeros(50, dtype=int)
    sums = Sums.empty(1, 2, float(reward.mean())).add(features, number, reward, np.ones(50))
    structure = PriorStructure.independent(np.array([0, 1]), 1)
    found = fitted(sums, structure, Prior.vague(2, sums.variance), float(reward.mean()), 50)
    assert found.prior.noise == pytest.approx(LEAST_NOISE * sums.variance)
    assert found.coefficients[0, 1] == pytest.approx(3.0, rel=0.01)


# Priors that regressions share, and exact posteriors

GROUPS = np.array([0, 1, 1, 1])


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e9])
def test_directions_are_orthonormal_and_span_what_describes_the_actions(unit, seed):
    rng = np.random.default_rng(seed)
    alike = rng.normal(size=(6, 2)) * [1.0, unit]
    structure = PriorStructure.sharing(GROUPS, 6, alike)
    directions = structure.directions
    np.testing.assert_allclose(directions.T @ directions, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(directions[:, 0], 6**-0.5)
    span = np.column_stack([np.ones(6), alike / [1.0, unit]])
    np.testing.assert_allclose(directions @ (directions.T @ span), span, atol=1e-9)
    assert structure.kinds.tolist() == [COMMON, ALIKE, ALIKE]
    assert structure.dimensions(2)[1][[OWN, COMMON, ALIKE]].tolist() == [9, 3, 6]


def test_numbers_that_say_nothing_add_no_direction(seed):
    column = np.random.default_rng(seed).normal(size=5)
    alike = np.column_stack([column, np.full(5, 0.1), 3 * column - 7, np.zeros(5)])
    assert PriorStructure.sharing(GROUPS, 5, alike).kinds.tolist() == [COMMON, ALIKE]
    assert PriorStructure.sharing(GROUPS, 5, alike[:, [1]]).kinds.tolist() == [COMMON]


def test_described_regressions_are_explained_by_what_describes_them(seed):
    """Five of six regressions have rows, and their constants lie on a line of what describes them.

    The sixth one has no row and is expected on the same line.
    """
    rng = np.random.default_rng(seed)
    number = np.arange(200) % 5
    reward = 0.1 * number + 0.01 * rng.normal(size=200)
    sums = Sums.empty(6, 1, float(reward.mean())).add(
        np.ones((200, 1)), number, reward, np.ones(200)
    )
    structure = PriorStructure.sharing(np.array([0]), 6, np.arange(6.0)[:, None])
    start = Prior.vague(1, sums.variance, described=True)
    found = fitted(sums, structure, start, float(reward.mean()), steps=5)
    assert found.coefficients[5, 0] + reward.mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("BATCHED_WIDTH", BATCHED_WIDTH), ("BATCHED_WIDTH", 0), ("FEW_ROWS", 0.6), ("FEW_ROWS", 1e9)],
    ids=["together", "one by one", "some have few rows", "all have few rows"],
)
def test_mean_variance_and_evidence_are_those_of_the_dense_distribution(
    case, setting, value, seed, monkeypatch
):
    monkeypatch.setattr(posterior, setting, value)
    found, shape = case.posterior, (len(case.structure.directions), case.features.shape[1])
    asked = np.random.default_rng(seed).normal(size=(5, shape[1]))
    if setting == "FEW_ROWS":
        sums = Sums.empty(*shape, 0.3).keep(case.features, case.number, case.reward, case.weight)
        found, asked = Posterior.of(sums, case.structure, case.prior, case.centre), case.features
        for mine, theirs in zip(moments_of(found), moments_of(case.posterior), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)
    mean, covariance, evidence = case.dense()
    np.testing.assert_allclose(found.coefficients, mean, atol=1e-10)
    assert found.log_evidence == pytest.approx(evidence, abs=1e-8)
    variance = np.einsum("nf,kfkg,ng->nk", asked, covariance.reshape(shape * 2), asked)
    np.testing.assert_allclose(variance_of(found, asked), variance, atol=1e-10)


def test_roots_are_those_of_the_covariance_of_each_regression(case):
    if case.posterior.coupled is not None:
        return
    _, covariance, _ = case.dense()
    for number, root in enumerate(covariance_of(case).roots()):
        mine = slice(6 * number, 6 * number + 6)
        np.testing.assert_allclose(root.T @ root, covariance[mine, mine], atol=1e-10)


def covariance_of(case):
    return PosteriorCovariance.of(case.sums, case.structure, case.prior)


def dense_covariance(case):
    """The covariance of all coefficients, divided by the units of both."""
    _, covariance, _ = case.dense()
    unit = np.tile(case.posterior.covariance.unit, len(case.structure.directions))
    return covariance / unit / unit[:, None]


def test_a_response_is_multiplied_by_the_dense_covariance(case, seed):
    shape = (3, len(case.structure.directions), case.features.shape[1])
    response = np.random.default_rng(seed).normal(size=shape)
    found = covariance_of(case).applied(case.structure, response)
    expected = response.reshape(3, -1) @ dense_covariance(case)
    np.testing.assert_allclose(found.reshape(3, -1), expected, atol=1e-9)


@pytest.mark.parametrize("first", [0, 1, 40, 69])
def test_rows_that_come_later_give_the_covariance_of_all_rows(case, first):
    columns = (case.features, case.number, case.reward, case.weight)
    early = case._replace(
        **dict(zip(case._fields, (column[:first] for column in columns), strict=False))
    )
    covariance = covariance_of(early)
    for begin in range(first, len(case.reward), 9):
        later = slice(begin, begin + 9)
        covariance = covariance.with_rows(
            case.features[later], case.number[later], case.weight[later]
        )
    expected = covariance_of(case).inverse.dense()
    np.testing.assert_allclose(covariance.inverse.dense(), expected, atol=1e-9)


def test_random_responses_have_the_posterior_precision(case):
    """A response is linear in its random numbers, so its covariance is that of a matrix."""
    count, width = len(case.structure.directions), case.features.shape[1]
    covariance, size = covariance_of(case), count * width
    unit_vectors, zeros = np.eye(size).reshape(size, count, width), np.zeros((size, count, width))
    of_prior = covariance.draw_responses(case.structure, unit_vectors, zeros).reshape(size, size)
    of_noise = covariance.draw_responses(case.structure, zeros, unit_vectors).reshape(size, size)
    # The noise Σ √w φ ε of a regression has the covariance Σ w φ φᵀ.
    gram = np.zeros((count, width, count, width))
    for number in range(count):
        gram[number, :, number] = case.sums.gram[number]
    found = of_prior.T @ of_prior + of_noise.T @ gram.reshape(size, size) @ of_noise
    expected = np.linalg.inv(dense_covariance(case))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


# Regressions on the choices of slots: the features, and what is believed

MAP_SIZES = (3, 2, 4)


def slot_map_of(seed, width, pairs=True, most=10_000):
    context = np.random.default_rng((seed, 5)).normal(2.0, 3.0, size=(50, width))
    return SlotMap.of(MAP_SIZES, context, np.ones(50), most, pairs), context


def by_hand(slot_map, context, action):
    """The features of one row, effect by effect."""
    z = np.clip((context - slot_map.shift) * slot_map.scale, -FARTHEST, FARTHEST)
    choices = [
        float(action[slot] == one) for slot, size in enumerate(MAP_SIZES) for one in range(size)
    ]
    row = [1.0, *z, *choices, *(choice * number for choice in choices for number in z)]
    if slot_map.pairs:
        for one, other in itertools.combinations(range(len(MAP_SIZES)), 2):
            for mine, yours in itertools.product(range(MAP_SIZES[one]), range(MAP_SIZES[other])):
                row.append(float((action[one], action[other]) == (mine, yours)))
    return row


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("width", [0, 2])
def test_rows_are_those_written_out_by_hand(width, pairs, seed):
    slot_map, context = slot_map_of(seed, width, pairs)
    rng = np.random.default_rng(seed)
    action = rng.integers(MAP_SIZES, size=(50, 3))
    context[0] = 1e6
    expected_width = slot_map.width
    assert slot_map_of(seed, width, pairs, expected_width)[0].pairs == pairs
    assert not slot_map_of(seed, width, pairs, expected_width - 1)[0].pairs
    found = slot_map.rows(context, action).toarray()
    expected = [by_hand(slot_map, *row) for row in zip(context, action, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found.shape[1] == slot_map.width == len(slot_map.groups)


@pytest.mark.parametrize("width", [0, 2])
def test_effects_of_choices_and_pairs_add_up_to_the_product_with_the_features(width, seed):
    slot_map, context = slot_map_of(seed, width)
    rng = np.random.default_rng(seed)
    coefficients, action = (
        rng.normal(size=(4, slot_map.width)),
        rng.integers(MAP_SIZES, size=(50, 3)),
    )
    expected = slot_map.rows(context, action) @ coefficients.T
    z = standardized(context, slot_map.shift, slot_map.scale)
    total = coefficients[:, 0] + z @ coefficients[:, 1 : 1 + width].T
    row = np.arange(50)
    for slot, effects in enumerate(slot_map.choice_effects(coefficients, context)):
        total = total + effects[row, :, action[:, slot]]
    for (one, other), effects in slot_map.pair_effects(coefficients).items():
        total = total + effects[:, action[:, one], action[:, other]].T
    np.testing.assert_allclose(total, expected, atol=1e-10)


SIZES = (3, 2)
SLOT_SETTINGS = SlotSettings(SIZES, effects=200, rows=60, draws=3000, width=0.5, pairs=True)
"""A new map is chosen up to 60 rows, so that the tests see both before and after."""


def some_slot_rows(count, seed):
    rng = np.random.default_rng((seed, 7))
    context, action = rng.normal(size=(count, 1)), rng.integers(SIZES, size=(count, 2))
    reward = 1.0 * (action[:, 0] == 1) + context[:, 0] * action[:, 1] + 0.5 * rng.normal(size=count)
    return RegressionRows(context, action, reward, np.full(count, np.nan), np.ones(count))


def learned_slots(rows, size, seed, settings=SLOT_SETTINGS):
    rng = np.random.default_rng(seed)
    belief = SlotBelief.unlearned(1, 2)
    for begin in range(0, len(rows.reward), size):
        part = slice(begin, begin + size)
        belief = belief.learned(rows.taken(part), settings, rng)
    return belief


def dense(belief, rows):
    """Mean and covariance of the effects, by one regression on all rows."""
    features = belief.slot_map.rows(rows.context, rows.number).toarray()
    variance = belief.prior.variance[belief.slot_map.groups, 0]
    precision = features.T @ features / belief.prior.noise + np.diag(1 / variance)
    covariance = np.linalg.inv(precision)
    response = features.T @ (rows.reward - belief.centre) / belief.prior.noise
    return covariance @ response, covariance


@pytest.mark.parametrize("size", [9, 50, 200])
def test_the_coefficients_are_those_of_one_regression_on_all_rows(size, seed):
    rows = some_slot_rows(200, seed)
    belief = learned_slots(rows, size, seed)
    mean, _ = dense(belief, rows)
    assert belief.centre == pytest.approx(rows.reward.mean())
    np.testing.assert_allclose(belief.coefficients, mean, atol=1e-8)


def test_the_draws_have_the_posterior_covariance(seed):
    rows = some_slot_rows(150, seed)
    belief = learned_slots(rows, 50, seed)
    mean, covariance = dense(belief, rows)
    asked = belief.slot_map.rows(rows.context[:6], rows.number[:6]).toarray()
    drawn, draws = belief.pool @ asked.T, SLOT_SETTINGS.draws
    variance = SLOT_SETTINGS.width**2 * np.einsum("nf,fg,ng->n", asked, covariance, asked)
    assert np.all(np.abs(drawn.mean(axis=0) - asked @ mean) < 6 * np.sqrt(variance / draws))
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=6 * (2 / draws) ** 0.5)


def test_equal_rewards_teach_nothing_and_are_remembered_in_a_bounded_sample(seed):
    rows = some_slot_rows(200, seed)._replace(reward=np.full(200, 0.25))
    belief = learned_slots(rows, 50, seed)
    assert belief.coefficients is belief.pool is belief.slot_map is None
    assert len(belief.kept.reward) == SLOT_SETTINGS.rows
    assert belief.kept.weight.sum() == pytest.approx(200)


# Rows of a regression: their sums, and a sample of them


@pytest.fixture
def rows(seed):
    rng = np.random.default_rng(seed)
    features = np.concatenate([np.ones((50, 1)), rng.normal(size=(50, 3))], axis=1)
    return features, rng.integers(3, size=50), rng.normal(size=50), rng.uniform(size=50)


def assert_equal(one, other):
    assert one.kept == other.kept == ()
    for mine, theirs in zip(one[:6], other[:6], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


def test_sums_that_keep_rows_are_those_of_the_rows(rows, monkeypatch):
    """Whether no row, some or all of them are in the Gram matrices."""
    monkeypatch.setattr(posterior, "FEW_ROWS", 4.0)
    features, number, _, weight = rows
    added, kept = Sums.empty(3, 4, 0.5).add(*rows), Sums.empty(3, 4, 0.5)
    for part in (slice(0, 20), slice(20, 50)):
        kept = kept.keep(*(column[part] for column in rows))
    partly = kept.settled()
    counts = np.bincount(number, minlength=3)
    np.testing.assert_array_equal(partly.summed, counts > 16)
    theta = np.random.default_rng(1).normal(size=(3, 4))
    twice = list(zip(rows, rows, strict=True))
    for one in (kept, partly, partly.settled(0.0)):
        assert_equal(one.settled(0.0), added)
        assert_equal(one.faded(0.3).settled(0.0), added.faded(0.3))
        assert_equal(one.joined(kept), Sums.empty(3, 4, 0.5).add(*map(np.concatenate, twice)))
        assert_equal(one.joined(Sums.empty(3, 4, -7.0).add(*rows)), added.joined(added))
        moment, square = one.centred(-2.0)
        other = Sums.empty(3, 4, -2.0).add(*rows)
        np.testing.assert_allclose(moment, other.moment, rtol=1e-10)
        assert square == pytest.approx(other.square)
        np.testing.assert_allclose(one.total, added.gram[:, :, 0], rtol=1e-10)
        fit = weight @ np.sum(features * theta[number], axis=1) ** 2
        assert one.squared(theta) == pytest.approx(fit)


def rows_from(first, count):
    """Rows whose numbers all say which they are."""
    place = np.arange(first, first + count)
    as_float = place.astype(np.float64)
    return RegressionRows(as_float[:, None], place, as_float, -as_float, np.ones(count))


def sampled(sizes, most, discount, rng):
    sample, first = SampledRows(RegressionRows.empty(1), 0), 0
    for size in sizes:
        sample = sample.add(rows_from(first, size), most, discount, rng)
        first += size
    return sample


def test_every_row_has_the_same_chance(seed):
    rng = np.random.default_rng(seed)
    sizes, kept = [3, 5, 1, 11], []
    for _ in range(1500):
        sample = sampled(sizes, 6, 1.0, rng)
        assert len(np.unique(sample.rows.number)) == 6
        # One of the six: those of one sample depend on each other.
        kept.append(rng.choice(sample.rows.number))
        np.testing.assert_array_equal(sample.rows.context[:, 0], sample.rows.number)
        np.testing.assert_array_equal(sample.rows.log_prob, -sample.rows.reward)
    assert goodness_of_fit(np.array(kept), np.full(20, 1 / 20)) > SMALLEST_P_VALUE


def test_weights_fall_with_every_later_row(seed):
    sample = sampled([4, 9, 1, 6], 12, 0.9, np.random.default_rng(seed))
    np.testing.assert_allclose(sample.rows.weight, 0.9 ** (19.0 - sample.rows.number))


def test_kept_rows_stand_for_all(seed):
    rng = np.random.default_rng(seed)
    assert sampled([], 5, 1.0, rng).standing_for_all().weight.size == 0
    assert sampled([3, 0, 2], 5, 1.0, rng).rows.number.tolist() == list(range(5))
    assert sampled([5], 5, 1.0, rng).standing_for_all().weight.tolist() == [1.0] * 5
    assert sampled([5, 35], 5, 1.0, rng).standing_for_all().weight.tolist() == [8.0] * 5
