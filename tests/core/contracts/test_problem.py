import numpy as np
import pytest
from refusals import raises_code

from submax.core.problem import Problem
from submax.core.spaces import Arms, Slots

PROBLEM = Problem(Slots((2, 3)), context_width=2)


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
    "features",
    [
        (((1.0,), (2.0,)),),
        [((1.0,), (2.0,)), ()],
        (((1.0,),), ()),
        (((1.0,), (2.0, 3.0)), ()),
        (((1.0,), [2.0]), ()),
    ],
)
def test_features_that_do_not_describe_every_choice_are_refused(features):
    with raises_code("invalid-input", "action_features"):
        Problem(Slots((2, 3)), action_features=features)


@pytest.mark.parametrize("number", [float("nan"), "rock"])
def test_features_that_are_no_finite_numbers_are_refused(number):
    with raises_code("invalid-input"):
        Problem(Slots((2, 3)), action_features=(((1.0,), (number,)), ()))


@pytest.mark.parametrize(
    "context",
    [
        np.zeros((2, 3)),
        np.zeros((2, 3, 1)),
        np.zeros((1, 2, 3, 2)),
        np.array([[[0.0, np.nan]]]),
        # Opposite infinities do not hide each other.
        np.array([[[np.inf, -np.inf]]]),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_contexts_of_another_shape_or_not_finite_are_refused(context):
    with raises_code("invalid-input", "context"):
        PROBLEM.check_context(context)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_finite_contexts_pass():
    for shape in ((1, 1, 2), (2, 0, 2)):
        PROBLEM.check_context(np.zeros(shape))
    PROBLEM.check_context(np.ones((1, 1, 2), dtype=np.float32))
    # Their sum overflows.
    PROBLEM.check_context(np.full((1, 2, 2), 1.5e308))
    Problem(Arms(2)).check_context(np.zeros((3, 4, 0)))


@pytest.mark.parametrize("stranger", [[2, 0], [0, 3], [-1, 0], [0], [0, 0, 0]])
def test_actions_of_the_space_pass_and_no_others(stranger):
    PROBLEM.check_action(PROBLEM.space.listing()[None])
    PROBLEM.check_action(np.zeros((1, 0, 2), dtype=np.int64))
    with raises_code("invalid-input", "action"):
        PROBLEM.check_action(np.array([[stranger]]))
