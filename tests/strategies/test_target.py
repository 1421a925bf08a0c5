import numpy as np
import pytest
from refusals import raises_code

from submax.core.conditioning.table import Table
from submax.strategies.optimistic import Optimistic
from submax.strategies.target import Target


def test_by_hand(small_table):
    # 0.25 p₀ + 0.75 p₁
    found = Target((0.25, 0.75)).probabilities(small_table)
    assert np.allclose(found, [0.3, 0.375, 0.325])


def test_its_ends_are_the_negative_and_the_optimistic_policy(small_table):
    assert np.allclose(Target((1.0, 0.0)).probabilities(small_table), [0.6, 0.3, 0.1])
    assert np.allclose(
        Target((0.0, 1.0)).probabilities(small_table), Optimistic().probabilities(small_table)
    )


def test_three_levels_by_hand():
    rows = np.array([[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]])
    table = Table(rows, np.array([0.0, 1.0, 2.0]), np.full(3, 1 / 3), np.zeros(3))
    assert np.allclose(Target((0.2, 0.3, 0.5)).probabilities(table), [0.45, 0.55])


def test_the_number_of_levels_must_fit(small_table):
    with raises_code("invalid-input"):
        Target((0.2, 0.3, 0.5)).probabilities(small_table)


@pytest.mark.parametrize(
    "distribution",
    [(), (0.5, 0.4), (1.5, -0.5), (float("nan"), 1.0), (True, False), ("0.5", "0.5"), (None, 1)],
)
def test_a_bad_distribution_is_refused(distribution):
    with raises_code("invalid-input"):
        Target(distribution)
