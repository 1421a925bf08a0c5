import numpy as np
import pytest
from refusals import raises_code

from submax.core.problem import Feedback, Problem
from submax.core.spaces import Arms, Box, Slots

PROBLEM = Problem(Arms(3), context_width=2)


def sound():
    return Feedback(
        context=np.zeros((2, 4, 2)),
        action=np.ones((2, 4, 1), dtype=np.int64),
        reward=np.zeros((2, 4)),
        log_prob=np.full((2, 4), -1.0),
        weight=np.ones((2, 4)),
    )


def with_entry(name, value):
    array = getattr(sound(), name).copy()
    array[0, 1] = value
    return sound()._replace(**{name: array})


def test_sound_feedback_passes():
    sound().check(PROBLEM)
    sound()._replace(log_prob=None).check(PROBLEM)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("context", (2, 4, 3)),
        ("action", (2, 4, 2)),
        ("action", (2, 3, 1)),
        ("reward", (2, 4, 1)),
        ("reward", (4,)),
        ("weight", (2, 3)),
        ("log_prob", (4,)),
    ],
)
def test_a_wrong_shape_is_refused(name, shape):
    feedback = sound()._replace(**{name: np.ones(shape, dtype=getattr(sound(), name).dtype)})
    with raises_code("invalid-input", name):
        feedback.check(PROBLEM)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("action", 3),
        ("action", -1),
        ("reward", np.nan),
        ("reward", 0.5),
        ("context", np.nan),
        ("log_prob", 0.5),
        ("log_prob", -np.inf),
        ("weight", -1.0),
        ("weight", np.nan),
        ("weight", np.inf),
    ],
)
def test_a_bad_value_is_refused_unless_its_row_is_not_there(name, value):
    bad = with_entry(name, value)
    with raises_code("invalid-input", name):
        bad.check(PROBLEM)
    if name != "weight":
        bad._replace(weight=with_entry("weight", 0.0).weight).check(PROBLEM)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("action", np.ones((2, 4, 1))),
        ("action", [[[1]] * 4] * 2),
        ("reward", np.full((2, 4), "1")),
        ("weight", None),
        ("context", None),
    ],
)
def test_anything_but_an_array_of_numbers_is_refused(name, value):
    with raises_code("invalid-input", name):
        sound()._replace(**{name: value}).check(PROBLEM)


def test_a_density_may_be_above_one():
    feedback = sound()._replace(action=np.full((2, 4, 1), 0.05), log_prob=np.full((2, 4), 3.0))
    feedback.check(Problem(Box((0.0,), (0.1,)), context_width=2))


# Problem

SLOTTED = Problem(Slots((2, 3)), context_width=2)


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
        SLOTTED.check_context(context)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_finite_contexts_pass():
    for shape in ((1, 1, 2), (2, 0, 2)):
        SLOTTED.check_context(np.zeros(shape))
    SLOTTED.check_context(np.ones((1, 1, 2), dtype=np.float32))
    # Their sum overflows.
    SLOTTED.check_context(np.full((1, 2, 2), 1.5e308))
    Problem(Arms(2)).check_context(np.zeros((3, 4, 0)))


@pytest.mark.parametrize("stranger", [[2, 0], [0, 3], [-1, 0], [0], [0, 0, 0]])
def test_actions_of_the_space_pass_and_no_others(stranger):
    SLOTTED.check_action(SLOTTED.space.listing()[None])
    SLOTTED.check_action(np.zeros((1, 0, 2), dtype=np.int64))
    with raises_code("invalid-input", "action"):
        SLOTTED.check_action(np.array([[stranger]]))


# Wrapper policy
