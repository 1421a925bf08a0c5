import numpy as np
import pytest

from submax.models.regression.belief_settings import BeliefSettings
from submax.models.regression.map_choice import (
    FEWEST_ROWS,
    LENGTHS,
    USUAL_LENGTH,
    best_map,
    sums_of,
)
from submax.models.regression.posterior import Posterior
from submax.models.regression.sampled_rows import RegressionRows

SETTINGS = BeliefSettings(actions=2, features=20, rows=1000, draws=4, width=1.0, discount=1.0)


def rows_of(context, number, reward):
    count = len(reward)
    return RegressionRows(context, number, reward, np.full(count, np.nan), np.ones(count))


def wavy_rows(count, seed, frequency=3.0, width=1):
    """The reward of an action is a wave of the first number, with some noise."""
    rng = np.random.default_rng(np.append(seed, 3))
    context, number = rng.uniform(-2, 2, size=(count, width)), rng.integers(2, size=count)
    wave = np.sin(frequency * context[:, 0]) * np.where(number == 0, 1.0, -1.0)
    return rows_of(context, number, wave + 0.1 * rng.normal(size=count))


def chosen(rows, settings=SETTINGS, seed=0):
    return best_map(rows, 0.0, None, settings, np.random.default_rng(seed))


def test_the_evidence_is_that_of_the_posterior_under_the_chosen_map(seed):
    rows = wavy_rows(120, seed)
    found = chosen(rows)
    structure = SETTINGS.prior_structure(found.feature_map.groups)
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


@pytest.mark.parametrize("difference", [0.0, 1e-13])
def test_there_is_no_map_for_rewards_that_are_equal_but_for_rounding(difference, seed):
    rows = wavy_rows(60, seed)
    equal = 100.0 + difference * (np.arange(60) % 2)
    assert chosen(rows._replace(reward=equal)) is None
