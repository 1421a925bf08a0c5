import numpy as np
import pytest

from submax.models.regression.fitting import fitted
from submax.models.regression.prior import ALIKE, COMMON, OWN, Prior, PriorStructure
from submax.models.regression.sums import Sums

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
