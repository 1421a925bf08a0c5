"""Regressions on the choices of slots: the features, and what is believed."""

import itertools

import numpy as np
import pytest
from refusals import raises_code

from submax.models.regression.features import FARTHEST
from submax.models.regression.slot_belief import JointRows, SlotBelief, SlotMap, SlotSettings

MAP_SIZES = (3, 2, 4)


def map_of(seed, width, pairs=True, most=10_000):
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
    slot_map, context = map_of(seed, width, pairs)
    rng = np.random.default_rng(seed)
    action = rng.integers(MAP_SIZES, size=(50, 3))
    context[0] = 1e6
    found = slot_map.rows(context, action).toarray()
    expected = [by_hand(slot_map, *row) for row in zip(context, action, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found.shape[1] == slot_map.width == len(slot_map.groups)


@pytest.mark.parametrize("width", [0, 2])
def test_effects_of_choices_and_pairs_add_up_to_the_product_with_the_features(width, seed):
    slot_map, context = map_of(seed, width)
    rng = np.random.default_rng(seed)
    coefficients, action = (
        rng.normal(size=(4, slot_map.width)),
        rng.integers(MAP_SIZES, size=(50, 3)),
    )
    expected = slot_map.rows(context, action) @ coefficients.T
    z = slot_map.standardized(context)
    total = coefficients[:, 0] + z @ coefficients[:, 1 : 1 + width].T
    row = np.arange(50)
    for slot, effects in enumerate(slot_map.choice_effects(coefficients, context)):
        total = total + effects[row, :, action[:, slot]]
    for (one, other), effects in slot_map.pair_effects(coefficients).items():
        total = total + effects[:, action[:, one], action[:, other]].T
    np.testing.assert_allclose(total, expected, atol=1e-10)


def test_pairs_are_left_out_beyond_the_largest_number_of_effects(seed):
    whole, _ = map_of(seed, 2)
    assert map_of(seed, 2, most=whole.width)[0].pairs
    smaller, _ = map_of(seed, 2, most=whole.width - 1)
    assert not smaller.pairs
    assert smaller.width == whole.first_pair
    assert smaller.pair_effects(np.zeros((1, smaller.width))) == {}


SIZES = (3, 2)
SETTINGS = SlotSettings(SIZES, effects=200, rows=60, draws=3000, width=0.5, pairs=True)
"""A new map is chosen up to 60 rows, so that the tests see both before and after."""


def some_rows(count, seed):
    rng = np.random.default_rng((seed, 7))
    context, action = rng.normal(size=(count, 1)), rng.integers(SIZES, size=(count, 2))
    reward = 1.0 * (action[:, 0] == 1) + context[:, 0] * action[:, 1] + 0.5 * rng.normal(size=count)
    return JointRows(context, action, reward, np.ones(count))


def learned(rows, size, seed, settings=SETTINGS):
    rng = np.random.default_rng(seed)
    belief = SlotBelief.unlearned(1, 2)
    for begin in range(0, len(rows.reward), size):
        part = slice(begin, begin + size)
        belief = belief.learned(JointRows(*(column[part] for column in rows)), settings, rng)
    return belief


def dense(belief, rows):
    """Mean and covariance of the effects, by one regression on all rows."""
    features = belief.slot_map.rows(rows.context, rows.action).toarray()
    variance = belief.prior.variance[belief.slot_map.groups, 0]
    precision = features.T @ features / belief.prior.noise + np.diag(1 / variance)
    covariance = np.linalg.inv(precision)
    response = features.T @ (rows.reward - belief.centre) / belief.prior.noise
    return covariance @ response, covariance


@pytest.mark.parametrize("size", [9, 50, 200])
def test_the_coefficients_are_those_of_one_regression_on_all_rows(size, seed):
    rows = some_rows(200, seed)
    belief = learned(rows, size, seed)
    mean, _ = dense(belief, rows)
    assert belief.centre == pytest.approx(rows.reward.mean())
    np.testing.assert_allclose(belief.coefficients, mean, atol=1e-8)


def test_the_draws_have_the_posterior_covariance(seed):
    rows = some_rows(150, seed)
    belief = learned(rows, 50, seed)
    mean, covariance = dense(belief, rows)
    asked = belief.slot_map.rows(rows.context[:6], rows.action[:6]).toarray()
    drawn, draws = belief.pool @ asked.T, SETTINGS.draws
    variance = SETTINGS.width**2 * np.einsum("nf,fg,ng->n", asked, covariance, asked)
    assert np.all(np.abs(drawn.mean(axis=0) - asked @ mean) < 6 * np.sqrt(variance / draws))
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=6 * (2 / draws) ** 0.5)


def test_equal_rewards_teach_nothing_and_are_remembered_in_a_bounded_sample(seed):
    rows = some_rows(200, seed)._replace(reward=np.full(200, 0.25))
    belief = learned(rows, 50, seed)
    assert belief.coefficients is belief.pool is belief.slot_map is None
    assert len(belief.kept.reward) == SETTINGS.rows
    assert belief.kept.weight.sum() == pytest.approx(200)


def test_a_belief_for_deciding_keeps_its_draws_and_refuses_to_learn(seed):
    belief = learned(some_rows(100, seed), 50, seed)
    stored = belief.for_deciding()
    assert stored.pool is belief.pool
    assert stored.sums is stored.noise is stored.prior is None
    with raises_code("invalid-input"):
        stored.learned(some_rows(5, seed), SETTINGS, np.random.default_rng(seed))
