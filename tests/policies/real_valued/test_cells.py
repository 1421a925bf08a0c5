import math

import numpy as np
import pytest
from scipy import stats

from submax.core.spaces.arms import Arms
from submax.core.spaces.box import Box
from submax.core.spaces.mixed import Mixed
from submax.core.spaces.slots import Slots
from submax.policies.real_valued.cells import Cells
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE

SPACES = [
    Box((0.0,), (1.0,)),
    Box((0.1, -5.0), (0.7, 30.0)),
    Mixed((3, 2), (-0.3,), (0.9,)),
    Arms(4),
    Slots((2, 3)),
]
every_space = pytest.mark.parametrize("space", SPACES, ids=repr)


@every_space
@pytest.mark.parametrize("points", [1, 3, 10])
def test_a_point_within_a_cell_belongs_to_it(space, points, seed):
    cells = Cells(space, points)
    every = np.repeat(cells.listed.listing()[:, None], 200, axis=1)
    action = cells.within(every, np.random.default_rng(seed))
    assert space.contains(action)
    assert np.array_equal(cells.of(action), every)


@every_space
@pytest.mark.parametrize("points", [1, 3, 10])
def test_all_cells_together_have_the_volume_of_the_space(space, points):
    cells = Cells(space, points)
    whole = math.exp(cells.log_volume) * cells.listed.size
    assert math.isclose(whole, math.exp(space.log_measure))


def test_the_volume_of_a_cell_by_hand():
    assert math.isclose(math.exp(Cells(SPACES[1], 4).log_volume), 0.6 / 4 * 35 / 4)
    assert math.isclose(math.exp(Cells(SPACES[2], 4).log_volume), 1.2 / 4)
    assert Cells(Slots((2, 3)), 4).log_volume == 0


def test_the_cell_of_each_action_by_hand():
    cells = Cells(Mixed((3,), (-1.0,), (1.0,)), 4)
    action = np.array([[2, -1.0], [0, -0.51], [0, -0.5], [1, 0.49], [1, 0.5], [2, 1.0]])
    assert cells.of(action).tolist() == [[2, 0], [0, 0], [0, 1], [1, 2], [1, 3], [2, 3]]
    assert cells.listed == Slots((3, 4))


def test_points_within_a_cell_are_uniform(seed):
    cells = Cells(SPACES[1], 5)
    cell = np.tile([2, 4], (4000, 1))
    drawn = cells.within(cell, np.random.default_rng(seed))
    for dimension, (low, width) in enumerate([(0.1 + 2 * 0.12, 0.12), (-5.0 + 4 * 7, 7.0)]):
        fit = stats.kstest(drawn[:, dimension], stats.uniform(low, width).cdf)
        assert fit.pvalue > SMALLEST_P_VALUE
    assert stats.pearsonr(*drawn.T).pvalue > SMALLEST_P_VALUE


@every_space
def test_the_centers_are_those_of_the_cells_in_their_order(space):
    cells = Cells(space, 3)
    listing, centers = cells.listed.listing(), cells.centers()
    for row, cell in enumerate(listing):
        for slot, place in enumerate(cell):
            real = slot >= len(space.choices)
            assert centers[row, slot] == pytest.approx((place + 0.5) / 3 if real else place)
    if space.reals:
        assert np.array_equal(cells.of(space.unscaled(centers)), listing)
