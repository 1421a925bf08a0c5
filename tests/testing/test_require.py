"""What every suite asks of an object before its rules."""

import pytest

from submax import Policy
from submax.estimators import Counting
from submax.policies import Thompson
from submax.testing.rules.require import require_equal_copy, require_instance


@pytest.mark.parametrize("given", [Thompson, Counting(), "random"], ids=["class", "other", "text"])
def test_only_an_instance_of_the_contract_is_tested(given):
    require_instance(Thompson(), Policy)
    with pytest.raises(AssertionError):
        require_instance(given, Policy)


class Unlike:
    def __eq__(self, other):
        return False

    __hash__ = None


def test_an_object_must_be_equal_to_its_pickled_copy():
    require_equal_copy(Thompson())
    for other in (lambda: None, Unlike()):
        with pytest.raises(AssertionError):
            require_equal_copy(other)
