import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submax import Table
from submax.strategies import Advantage, SubMax
from submax.testing.strategies import random_table

NO_VALUES = np.full(3, np.nan)


def joint_table(shares, chances, levels):
    """The table of a logging policy p(a) and chances p(l | a), by Bayes: ``[A]``, ``[A, L]``."""
    joint = shares[:, None] * chances
    prior = joint.sum(axis=0)
    return Table(
        probabilities=(joint / np.where(prior > 0, prior, 1.0)).T + (prior == 0)[:, None],
        levels=np.array(levels),
        prior=prior,
        values=np.full(len(prior), np.nan),
    )


def test_the_weights_by_hand():
    table = Table(
        probabilities=np.array([[0.2, 0.8], [0.8, 0.2], [0.4, 0.6]]),
        levels=np.array([1.0, 2.0, 6.0]),
        prior=np.array([0.5, 0.25, 0.25]),
        values=NO_VALUES,
    )
    # The mean reward is 2.5.
    assert Advantage().weights(table).tolist() == [-0.75, -0.125, 0.875]
    # 0.35 − 0.15 − 0.1 = 0.1 and 0.525 − 0.6 − 0.025 = −0.1
    np.testing.assert_allclose(Advantage().probabilities(table), [1.0, 0.0], atol=1e-12)


@given(
    rows=st.lists(st.tuples(*[st.integers(1, 50)] * 2), min_size=2, max_size=8),
    good=st.integers(1, 99),
)
def test_with_two_levels_it_is_submax(rows, good):
    counts = np.array(rows, dtype=np.float64).T
    table = Table(
        probabilities=counts / counts.sum(axis=1, keepdims=True),
        levels=np.array([0.0, 1.0]),
        prior=np.array([1 - good / 100, good / 100]),
        values=np.full(2, np.nan),
    )
    np.testing.assert_allclose(
        Advantage().probabilities(table), SubMax().probabilities(table), rtol=0, atol=1e-12
    )


def test_with_two_levels_it_is_submax_on_many_tables(seed):
    table = random_table((500,), 6, np.random.default_rng(seed))
    table = table._replace(levels=np.broadcast_to([-3.0, 7.0], (500, 2)))
    np.testing.assert_allclose(
        Advantage().probabilities(table), SubMax().probabilities(table), rtol=0, atol=1e-12
    )


def test_the_mixture_is_the_advantage_under_the_logging_policy(seed):
    rng, levels = np.random.default_rng(seed), (-1.0, 0.0, 2.0, 10.0)
    for _ in range(50):
        shares, chances = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(4), size=5)
        table = joint_table(shares, chances, levels)
        mixed = Advantage().weights(table) @ table.probabilities
        value = [sum(chances[a, one] * levels[one] for one in range(4)) for a in range(5)]
        mean = sum(shares[a] * value[a] for a in range(5))
        gain = np.array([shares[a] * (value[a] - mean) for a in range(5)])
        np.testing.assert_allclose(mixed, gain, rtol=0, atol=1e-12)
        policy = np.maximum(gain, 0) / np.maximum(gain, 0).sum()
        np.testing.assert_allclose(Advantage().probabilities(table), policy, rtol=0, atol=1e-9)


def test_a_level_that_was_never_observed_has_no_weight(seed):
    rng = np.random.default_rng(seed)
    shares, chances = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), size=4)
    chances[:, [1, 3]] = 0.0
    chances /= chances.sum(axis=1, keepdims=True)
    table = joint_table(shares, chances, (1.0, 2.0, 3.0, 4.0))
    weights = Advantage().weights(table)
    assert weights[1] == weights[3] == 0
    gain = np.maximum(shares * (chances @ table.levels - table.prior @ table.levels), 0)
    np.testing.assert_allclose(
        Advantage().probabilities(table), gain / gain.sum(), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("levels", [(1.0, 5.0), (1000.0, 1001.0)], ids=str)
def test_it_is_uniform_where_all_rows_agree(levels, seed):
    rng = np.random.default_rng(seed)
    good = rng.beta(1.0, 20.0, size=(1000, 1))
    rows = rng.dirichlet(np.ones(4), size=(1000, 1)).repeat(2, axis=1)
    prior = np.concatenate([1 - good, good], axis=1)
    table = Table(rows, np.broadcast_to(levels, (1000, 2)), prior, np.full((1000, 2), np.nan))
    assert np.array_equal(Advantage().probabilities(table), np.full((1000, 4), 0.25))
