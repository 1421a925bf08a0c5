import pytest

from submax.core.arms import Arms
from submax.core.errors import InvalidValue
from submax.core.problem import Problem


@pytest.mark.parametrize("width", [-1, 1.0, True, None])
def test_a_bad_context_width_is_refused(width):
    with pytest.raises(InvalidValue, match="context_width must be a whole number"):
        Problem(Arms(2), context_width=width)
