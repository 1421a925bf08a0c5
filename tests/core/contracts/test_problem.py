import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.core.spaces.slots import Slots


@pytest.mark.parametrize("width", [-1, 1.0, True, None])
def test_a_bad_context_width_is_refused(width):
    with raises_code("invalid-input", "context_width"):
        Problem(Arms(2), context_width=width)


def test_features_of_actions_are_part_of_the_problem():
    features = (((1.0,), (2.0,)), ())
    problem = Problem(Slots((2, 3)), action_features=features)
    assert problem == Problem(Slots((2, 3)), action_features=features)
    assert problem != Problem(Slots((2, 3)))
    assert hash(problem) == hash(Problem(Slots((2, 3)), action_features=features))


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        ((((1.0,), (2.0,)),), "rows for each of 2 slots"),
        ([((1.0,), (2.0,)), ()], "rows for each of 2 slots"),
        ((((1.0,),), ()), "slot 0 must be a tuple with a row for each of 2 choices"),
        (([(1.0,), (2.0,)], ()), "slot 0 must be a tuple with a row for each of 2 choices"),
        ((((1.0,), (2.0, 3.0)), ()), r"rows of 1 numbers.*choice 1 is \(2.0, 3.0\)"),
        ((((1.0,), [2.0]), ()), "rows of 1 numbers"),
        ((((1.0,), (float("nan"),)), ()), "choice 1 in slot 0 must be a finite number, not nan"),
        ((((1.0,), ("rock",)), ()), "choice 1 in slot 0 must be a finite number, not 'rock'"),
    ],
)
def test_features_that_do_not_describe_every_choice_are_refused(features, reason):
    with raises_code("invalid-input"):
        Problem(Slots((2, 3)), action_features=features)
