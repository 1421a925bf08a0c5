import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from submax import Table
from submax.strategies import Iterated, SubMax


def slow(table, depth):
    size = table.probabilities.shape[-1]
    policy, value = [], []
    for action in range(size):
        column = [table.prior[level] * row[action] for level, row in enumerate(table.probabilities)]
        policy.append(sum(column))
        earned = sum(level * part for level, part in zip(table.levels, column, strict=True))
        value.append(earned / sum(column) if sum(column) > 0 else 0.0)
    for _ in range(depth):
        mean = sum(p * v for p, v in zip(policy, value, strict=True))
        mass = [p * max(v - mean, 0.0) for p, v in zip(policy, value, strict=True)]
        if sum(mass) > 1e-12:
            policy = [m / sum(mass) for m in mass]
    return np.array(policy)


def test_two_steps_by_hand():
    logging, value = np.full(5, 0.2), np.array([0.1, 0.2, 0.3, 0.6, 0.8])
    mean = 0.4
    rows = np.stack([logging * (1 - value) / (1 - mean), logging * value / mean])
    table = Table(rows, np.array([0.0, 1.0]), np.array([0.6, 0.4]), np.zeros(2))
    # Advantages 0.2 and 0.4 give (1/3, 2/3); their mean is 11/15, and only the last is above.
    assert np.allclose(Iterated(1).probabilities(table), [0, 0, 0, 1 / 3, 2 / 3])
    assert np.allclose(Iterated(2).probabilities(table), [0, 0, 0, 0, 1])
    assert np.allclose(Iterated(5).probabilities(table), [0, 0, 0, 0, 1])


@given(data=st.data(), depth=st.integers(1, 4))
def test_it_follows_the_recursion(joint_tables, data, depth):
    table, _, value = data.draw(joint_tables)
    assume(np.ptp(value) > 0)
    assert np.allclose(Iterated(depth).probabilities(table), slow(table, depth), atol=1e-7)


@given(data=st.data())
def test_one_step_is_submax_where_rows_come_from_one_joint_distribution(joint_tables, data):
    table, _, value = data.draw(joint_tables)
    assume(np.ptp(value) > 0)
    expected = SubMax().probabilities(table)
    assert np.allclose(Iterated(1).probabilities(table), expected, atol=1e-7)


@given(data=st.data())
def test_one_step_is_submax_on_any_table_of_two_levels(tables, data):
    # π₀ (v − v̄) = prior₀ prior₁ (p₁ − p₀) whatever the rows: π₀ is their mixture.
    table = data.draw(tables)
    assume(np.any(table.probabilities[1] > table.probabilities[0] + 1e-9))
    expected = SubMax().probabilities(table)
    assert np.allclose(Iterated(1).probabilities(table), expected, atol=1e-7)


@given(data=st.data(), depth=st.integers(1, 3), shift=st.integers(-3, 3))
def test_a_shift_of_all_rewards_changes_nothing(joint_tables, data, depth, shift):
    table, _, value = data.draw(joint_tables)
    assume(np.ptp(value) > 0)
    moved = table._replace(levels=table.levels + shift)
    expected = Iterated(depth).probabilities(table)
    assert np.allclose(Iterated(depth).probabilities(moved), expected, atol=1e-7)


@pytest.mark.parametrize("lowest", [0.0, -0.3, -1.0, 7.0])
def test_where_no_action_is_better_it_keeps_what_was_played(lowest, seed):
    rng = np.random.default_rng(seed)
    row = rng.dirichlet(np.ones(5), size=100)[:, None, :]
    table = Table(
        probabilities=np.repeat(row, 2, axis=1),
        levels=np.array([lowest, lowest + 1.0]),
        prior=np.tile([0.7, 0.3], (100, 1)),
        values=np.zeros((100, 2)),
    )
    assert np.allclose(Iterated(3).probabilities(table), row[:, 0])
