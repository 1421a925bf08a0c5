import numpy as np
import pytest
from refusals import raises_code

from submax.core.problem import Feedback, Problem
from submax.core.spaces import Arms, Box

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
