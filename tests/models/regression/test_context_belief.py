"""Which features of contexts are chosen, and what is believed about contexts."""

import numpy as np
import pytest
from refusals import raises_code

from submax.models.regression.bayesian import Posterior, Sums
from submax.models.regression.context_belief import (
    FEWEST_ROWS,
    LENGTHS,
    LIKE_UNIFORM,
    USUAL_LENGTH,
    BeliefSettings,
    ContextBelief,
    RegressionRows,
    best_map,
)
from submax.models.regression.features import new_map

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
    return best_map(rows, 0.0, None, settings, np.random.default_rng(seed))


def test_the_evidence_is_that_of_the_posterior_under_the_chosen_map(seed):
    rows = wavy_rows(120, seed)
    found = chosen(rows)
    structure = TWO_ACTIONS.prior_structure(found.feature_map.groups)
    posterior = Posterior.of(sums_of(rows, found.feature_map, 2), structure, found.prior, 0.0)
    assert found.log_evidence == pytest.approx(posterior.log_evidence)
    np.testing.assert_allclose(found.coefficients, posterior.coefficients)


def test_a_fast_wave_has_short_kernels_and_a_slow_one_long_ones(seed):
    assert chosen(wavy_rows(300, seed, frequency=6.0)).feature_map.length == min(LENGTHS)
    # A slow wave had the longest kernels in 91 of 100 samples: in 12 of them hardly ever in fewer
    # than 7, with a probability of 1e-5.
    slow = [chosen(wavy_rows(300, (seed, number), frequency=0.8)) for number in range(12)]
    assert sum(one.feature_map.length == max(LENGTHS) for one in slow) >= 7


def test_with_few_rows_kernels_have_the_usual_length(seed):
    assert chosen(wavy_rows(FEWEST_ROWS - 1, seed)).feature_map.length == USUAL_LENGTH


def test_a_number_that_decides_the_reward_is_more_relevant(seed):
    found = chosen(wavy_rows(500, seed, width=3)).feature_map
    assert found.reach[0] > 1.5 * found.reach[1:].max()


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
    np.testing.assert_allclose(belief.sums.gram, expected.gram, rtol=1e-8, atol=1e-9)
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


def test_the_mean_and_the_draws_are_those_of_the_posterior(seed):
    rows = some_rows(300, seed)
    settings = BeliefSettings(3, 12, 100, 4000, 0.5, 1.0)
    belief = learned(rows, settings, seed, 300)
    posterior = Posterior.of(
        belief.sums,
        settings.prior_structure(belief.feature_map.groups),
        belief.prior,
        belief.centre,
    )
    asked = rows.context[:5]
    features = belief.feature_map.rows(asked)
    expected = features @ posterior.coefficients.T + belief.centre
    np.testing.assert_allclose(belief.mean(belief.feature_map.raw(asked)), expected, rtol=1e-6)
    drawn = belief.drawn(asked)
    variance = 0.25 * posterior.variance(features)
    assert np.all(np.abs(drawn.mean(axis=1) - expected) < 7 * np.sqrt(variance / 4000))
    np.testing.assert_allclose(drawn.var(axis=1), variance, rtol=7 * (2 / 4000) ** 0.5)


def test_it_learns_what_is_not_linear(seed):
    rows, new = some_rows(2000, seed), some_rows(500, seed + 1)
    settings = BeliefSettings(3, 40, 500, 8, 1.0, 1.0)
    belief = learned(rows, settings, seed, 200)
    expected = np.sin(new.context[:, :1]) * [-1.0, 0.0, 1.0]
    error = belief.mean(belief.feature_map.raw(new.context)) - expected
    assert np.mean(error**2) < 0.05 * np.var(expected)


@pytest.mark.parametrize("value", [0.0, -1e6 / 3])
def test_equal_rewards_teach_nothing(value, seed):
    rows = some_rows(250, seed)
    belief = learned(rows._replace(reward=np.full(250, value)), SETTINGS, seed, 20)
    assert belief.feature_map is None
    assert belief.sums is None
    assert belief.coefficients is None


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
    found = (other.drawn(rows.context[:9] * width) - offset) / unit
    np.testing.assert_allclose(found, one.drawn(rows.context[:9]), rtol=1e-4, atol=1e-4)


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


def test_what_is_not_shared_says_nothing_about_other_actions(seed):
    rows = some_rows(300, seed)
    settings = BeliefSettings(3, 12, 100, 8, 1.0, 1.0, kernels=False, shared=False)
    belief = learned(rows.taken(rows.number < 2), settings, seed, 50)
    assert belief.feature_map.width == 3
    np.testing.assert_allclose(belief.coefficients[2], 0.0)
    assert np.abs(belief.coefficients[:2]).max() > 0.1


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
    np.testing.assert_array_equal(stored.drawn(rows.context), belief.drawn(rows.context))
    one = rows.context[0]
    np.testing.assert_array_equal(
        stored.drawn_contrasts_alone(one), belief.drawn_contrasts_alone(one)
    )
    assert stored.feature_map.landmarks.size
    assert not stored.feature_map.whitening.size
    with raises_code("invalid-input"):
        stored.learned(rows, SETTINGS, np.random.default_rng(seed))


def test_all_numbers_of_a_wide_context_stay_linear_features(seed):
    context = np.random.default_rng(seed).standard_normal((200, 400))
    found = new_map(context, np.ones(200), 288, np.random.default_rng(seed))
    assert found.projection is None
    assert (len(found.landmarks), found.width) == (48, 449)
