import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.spaces.arms import Arms
from submax.core.spaces.slots import Slots

PROBLEM = Problem(Slots((2, 3)), context_width=2)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 1), (2, 3, 3), (2,), (1, 2, 3, 2)])
def test_contexts_of_another_shape_are_refused(shape):
    with pytest.raises(InputError) as error:
        PROBLEM.check_context(np.zeros(shape))
    assert str(error.value) == f"context must have shape [R, n, 2], not {list(shape)}"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_context_that_is_not_finite_is_named(value):
    context = np.ones((2, 3, 2))
    context[1, 2, 0] = value
    with pytest.raises(InputError) as error:
        PROBLEM.check_context(context)
    expected = f"context must be finite, and number 0 of row 2, replica 1 is {value}"
    assert str(error.value) == expected


@pytest.mark.parametrize(
    "context",
    [
        np.zeros((1, 1, 2)),
        np.zeros((2, 0, 2)),
        np.full((1, 2, 2), -1e300),
        np.ones((1, 1, 2), dtype=np.float32),
    ],
    ids=lambda one: str(one.shape),
)
def test_finite_contexts_pass(context):
    PROBLEM.check_context(context)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_finite_contexts_whose_sum_overflows_pass():
    PROBLEM.check_context(np.full((1, 2, 2), 1.5e308))


def test_opposite_infinities_do_not_hide_each_other():
    context = np.array([[[np.inf, -np.inf]]])
    with (
        np.errstate(invalid="ignore"),
        raises_code("invalid-input"),
    ):
        PROBLEM.check_context(context)


def test_without_context_the_width_is_0():
    Problem(Arms(2)).check_context(np.zeros((3, 4, 0)))


@pytest.mark.parametrize("stranger", [[2, 0], [0, 3], [-1, 0], [0, -1]])
def test_an_action_outside_the_space_is_named(stranger):
    action = np.array([[[1, 2], [0, 0]], [stranger, [5, 5]]])
    with pytest.raises(InputError) as error:
        PROBLEM.check_action(action)
    expected = (
        f"the action {stranger} is not in Slots(sizes=(2, 3)), whose actions have 2 parts within "
        "their bounds"
    )
    assert str(error.value) == expected


def test_actions_of_the_space_pass():
    PROBLEM.check_action(PROBLEM.space.listing()[None])
    PROBLEM.check_action(np.zeros((1, 0, 2), dtype=np.int64))


@pytest.mark.parametrize("shape", [(1, 2, 1), (1, 2, 3)])
def test_actions_of_another_width_are_refused(shape):
    with raises_code("invalid-input"):
        PROBLEM.check_action(np.zeros(shape, dtype=np.int64))
