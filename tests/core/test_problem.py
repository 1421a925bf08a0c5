import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submax.core.arms import Arms
from submax.core.errors import InvalidValue
from submax.core.problem import Problem


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=6, unique=True),
    st.lists(st.integers(-200, 200), min_size=1, max_size=20),
)
def test_level_index_is_the_nearest_level(levels, quarters):
    problem = Problem(Arms(2), levels=tuple(float(level) for level in sorted(levels)))
    reward = np.array(quarters)[None] / 4
    distance = np.abs(reward[..., None] - np.array(problem.levels))
    found = np.take_along_axis(distance, problem.level_index(reward)[..., None], axis=-1)
    assert np.array_equal(found[..., 0], distance.min(axis=-1))


@pytest.mark.parametrize(
    "levels", [(), (1.0,), (1.0, 0.0), (0.0, 0.0), (0.0, float("nan")), (0.0, float("inf"))]
)
def test_bad_levels_are_refused(levels):
    with pytest.raises(InvalidValue, match="levels must"):
        Problem(Arms(2), levels=levels)


@pytest.mark.parametrize("width", [-1, 1.0, True, None])
def test_a_bad_context_width_is_refused(width):
    with pytest.raises(InvalidValue, match="context_width must be a whole number"):
        Problem(Arms(2), context_width=width)
