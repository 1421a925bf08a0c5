"""Features of contexts: numbers, kernels at landmarks, and how numbers are standardized."""

import math

import numpy as np
import pytest
from scipy.cluster.vq import kmeans2

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
)


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


def test_coefficients_for_raw_features_have_the_same_products(seed):
    context, rng = contexts(seed)
    found = map_of(context, 20, rng)
    coefficients = rng.normal(size=(2, 4, 20))
    expected = coefficients @ found.rows(context).T
    np.testing.assert_allclose(
        found.for_raw(coefficients) @ found.raw(context).T, expected, rtol=1e-6, atol=1e-6
    )


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


def test_wide_contexts_are_projected_and_keep_their_length(seed):
    context, rng = contexts(seed, rows=400, width=1000)
    found = map_of(context, 100, rng)
    assert found.width == 1 + 300 + 48
    assert np.count_nonzero(found.groups == LINEAR) == 300
    z, linear = found.standardized(context), found.rows(context)[:, 1:301]
    ratio = np.sum(linear**2, axis=1) / np.mean(z**2, axis=1)
    # Each is χ² with 300 degrees of freedom divided by 300.
    assert np.all(np.abs(ratio - 1) < 7 * (2 / 300) ** 0.5)


@pytest.mark.parametrize(("most", "linear"), [(100, 30), (31, 30), (20, 19)])
def test_without_kernels_the_linear_part_takes_all_features(most, linear, seed):
    context, rng = contexts(seed, width=30)
    found = map_of(context, most, rng, kernels=False)
    assert found.width == 1 + linear
    assert (found.projection is None) == (linear == 30)


def test_numbers_far_away_are_cut_off(seed):
    context, rng = contexts(seed)
    found = map_of(context, 20, rng)
    z = found.standardized(np.full((1, 3), 1e9))
    assert z.tolist() == [[FARTHEST] * 3]


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


def test_numbers_without_outliers_have_their_mean_and_deviation(seed):
    context, _ = normal(seed)
    shift, scale = standardization(context, np.ones(500))
    np.testing.assert_allclose(shift, context.mean(axis=0))
    np.testing.assert_allclose(scale, 1 / context.std(axis=0))


@pytest.mark.parametrize("absurd", [1e6, -1e6, 1e300])
@pytest.mark.parametrize("rows", [30, 500])
def test_one_absurd_value_does_not_hide_the_others(absurd, rows, seed):
    context, rng = normal(seed, rows)
    context[rng.integers(rows), 0] = absurd
    _, scale = standardization(context, np.ones(rows))
    # One value counts as at most 20 usual distances, which are below 0.8 deviations each.
    most = np.sqrt(1 + 20**2 / rows) * 1.5
    assert 1 / (10 * most) < scale[0] < 1.5 / 10


def test_rare_categories_keep_their_deviation(seed):
    rng = np.random.default_rng(seed)
    context = np.zeros((400, 2))
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


def test_no_rows_and_constant_numbers_have_no_scale():
    assert not np.any(standardization(np.zeros((0, 3)), np.zeros(0)))
    shift, scale = standardization(np.full((5, 1), 0.1), np.ones(5))
    assert shift == pytest.approx(0.1)
    assert scale == 0
