import numpy as np
import pytest

from submax.core.arms import Arms
from submax.core.errors import InvalidValue
from submax.core.feedback import Feedback
from submax.core.problem import Problem

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
        ("weight", (2, 3)),
        ("log_prob", (4,)),
    ],
)
def test_a_wrong_shape_is_named(name, shape):
    feedback = sound()._replace(**{name: np.ones(shape, dtype=getattr(sound(), name).dtype)})
    with pytest.raises(InvalidValue, match=f"{name} has shape"):
        feedback.check(PROBLEM)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("action", 3, "does not belong to the space"),
        ("action", -1, "does not belong to the space"),
        ("reward", np.nan, "reward must be finite"),
        ("reward", np.inf, "reward must be finite"),
        ("context", np.nan, "context must be finite"),
        ("log_prob", np.nan, "log_prob must be finite"),
        ("log_prob", -np.inf, "log_prob must be finite"),
        ("weight", -1.0, "weight must be finite and 0 or more"),
        ("weight", np.nan, "weight must be finite and 0 or more"),
        ("weight", np.inf, "weight must be finite and 0 or more"),
    ],
)
def test_a_bad_value_is_named(name, value, message):
    with pytest.raises(InvalidValue, match=message):
        with_entry(name, value).check(PROBLEM)


@pytest.mark.parametrize(
    ("name", "value"),
    [("action", 99), ("reward", np.nan), ("context", np.nan), ("log_prob", -np.inf)],
)
def test_a_row_that_is_not_there_may_hold_anything(name, value):
    with_entry(name, value)._replace(weight=with_entry("weight", 0.0).weight).check(PROBLEM)
