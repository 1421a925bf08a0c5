import numpy as np
import pytest
from refusals import raises_code

from submax import Arms, Box, Feedback, Problem, Slots

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
        ("context", np.ones((2, 4, 3))),
        ("action", np.ones((2, 4, 2), dtype=int)),
        ("action", np.ones((2, 3, 1), dtype=int)),
        ("reward", np.ones((2, 4, 1))),
        ("reward", np.ones(4)),
        ("weight", np.ones((2, 3))),
        ("log_prob", np.ones(4)),
        ("action", np.ones((2, 4, 1))),
        ("action", [[[1]] * 4] * 2),
        ("reward", np.full((2, 4), "1")),
        ("context", None),
    ],
)
def test_anything_but_an_array_of_numbers_of_its_shape_is_refused(name, value):
    with raises_code("invalid-input", name):
        sound()._replace(**{name: value}).check(PROBLEM)


def test_a_density_may_be_above_one():
    feedback = sound()._replace(action=np.full((2, 4, 1), 0.05), log_prob=np.full((2, 4), 3.0))
    feedback.check(Problem(Box((0.0,), (0.1,)), context_width=2))


# Problem

SLOTTED = Problem(Slots((2, 3)), context_width=2)


@pytest.mark.parametrize(
    "features",
    [
        (((1.0,), (2.0,)),),
        [((1.0,), (2.0,)), ()],
        (((1.0,),), ()),
        (((1.0,), (2.0, 3.0)), ()),
        (((1.0,), [2.0]), ()),
        (((1.0,), (float("nan"),)), ()),
        (((1.0,), ("rock",)), ()),
    ],
)
def test_features_that_do_not_describe_every_choice_by_finite_numbers_are_refused(features):
    with raises_code("invalid-input"):
        Problem(Slots((2, 3)), action_features=features)


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
