import numpy as np

from submax.core.conditioning.table import Table
from submax.strategies.optimistic import Optimistic


def test_it_is_the_row_of_the_highest_level(small_table):
    assert np.allclose(Optimistic().probabilities(small_table), [0.2, 0.4, 0.4])


def test_levels_between_do_not_count():
    rows = np.array([[1.0, 0.0], [0.5, 0.5], [0.3, 0.7]])
    table = Table(rows, np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.0, 0.5]), np.zeros(3))
    assert np.allclose(Optimistic().probabilities(table), [0.3, 0.7])


def test_it_is_uniform_before_the_first_reward(small_table):
    unseen = small_table._replace(prior=np.array([1.0, 0.0]))
    assert np.allclose(Optimistic().probabilities(unseen), 1 / 3)
