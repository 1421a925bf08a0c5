import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.spaces.arms import Arms
from submax.core.spaces.box import Box

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
    with raises_code("invalid-input"):
        feedback.check(PROBLEM)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("action", 3, "does not belong to the space"),
        ("action", -1, "does not belong to the space"),
        ("reward", np.nan, "a reward of Binary.* cannot be nan"),
        ("reward", np.inf, "a reward of Binary.* cannot be inf"),
        ("context", np.nan, "context must be finite"),
        ("log_prob", np.nan, "log_prob must be finite"),
        ("log_prob", -np.inf, "log_prob must be finite"),
        ("weight", -1.0, "weight must be finite and 0 or more"),
        ("weight", np.nan, "weight must be finite and 0 or more"),
        ("weight", np.inf, "weight must be finite and 0 or more"),
    ],
)
def test_a_bad_value_is_named(name, value, message):
    with raises_code("invalid-input"):
        with_entry(name, value).check(PROBLEM)


@pytest.mark.parametrize(
    ("name", "value"),
    [("action", 99), ("reward", np.nan), ("context", np.nan), ("log_prob", -np.inf)],
)
def test_a_row_that_is_not_there_may_hold_anything(name, value):
    with_entry(name, value)._replace(weight=with_entry("weight", 0.0).weight).check(PROBLEM)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"action": np.ones((2, 4, 1))}, "action must hold whole numbers, not float64"),
        ({"reward": np.full((2, 4), "1")}, "reward must hold numbers"),
        ({"reward": np.zeros((2, 4, 1))}, "reward has shape"),
        ({"reward": np.zeros(4)}, "reward has shape"),
        ({"weight": None}, "weight must be a numpy array, not None"),
        ({"context": None}, "context must be a numpy array, not None"),
        ({"action": [[[1]] * 4] * 2}, "action must be a numpy array"),
        ({"log_prob": np.full((2, 4), 0.5)}, "log_prob must be the logarithm of a probability"),
        ({"reward": np.full((2, 4), 0.5)}, "a reward of Binary() cannot be 0.5"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(change, message):
    with pytest.raises(InputError) as error:
        sound()._replace(**change).check(PROBLEM)
    assert message in str(error.value)


def test_a_density_may_be_above_one():
    feedback = sound()._replace(action=np.full((2, 4, 1), 0.05), log_prob=np.full((2, 4), 3.0))
    feedback.check(Problem(Box((0.0,), (0.1,)), context_width=2))
