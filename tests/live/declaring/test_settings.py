import pytest

import submax
from submax.core.errors import InputError


@pytest.mark.parametrize("value", [1.5, -1, "1", None, True])
def test_a_seed_that_is_no_whole_number_is_named(value):
    with pytest.raises(InputError) as refused:
        submax.Bandit(["A", "B"], seed=value)
    assert str(refused.value) == f"seed must be a whole number, at least 0, not {value!r}"
