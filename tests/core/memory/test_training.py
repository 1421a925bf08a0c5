import pytest
from refusals import raises_code

from submax.estimators import ESTIMATORS
from submax.estimators.network import CVAE
from submax.models.training import Training


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ("steps", [0, 1.0, True, None, "5"]),
        ("batch", [0, -1, 1.0, True, None, "5"]),
        ("learning_rate", [0.0, -0.1, float("nan"), True, None]),
        ("weight_decay", [-0.1, float("inf"), True, None]),
    ],
)
def test_bad_settings_are_refused(parameter, values):
    for value in values:
        with raises_code("invalid-input", parameter):
            Training(**{parameter: value})


def test_fitted_steps_go_on_by_themselves():
    with raises_code("invalid-input"):
        Training(continued=True)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"steps": 300}, False),
        ({"steps": 300, "standardized": True}, True),
        ({"standardized": False}, False),
    ],
    ids=str,
)
def test_contexts_are_standardized_by_default_if_steps_are_fitted(settings, expected):
    assert Training(**settings).standardizes is expected


def built(training):
    return ESTIMATORS.build({"kind": "cvae", "hidden": 4, "training": training}, {})


def test_it_is_read_from_a_table_within_a_table():
    table = {"steps": 7, "learning_rate": 1, "continued": True}
    expected = Training(steps=7, learning_rate=1.0, continued=True)
    assert built(table) == CVAE(hidden=4, training=expected)
    assert isinstance(built(table).training.learning_rate, float)
    assert built({}) == built({"steps": "fitted"}) == CVAE(hidden=4)


@pytest.mark.parametrize(
    ("table", "parameter"),
    [
        ({"stepps": 3}, None),
        ({"steps": 1.5}, "steps"),
        ({"steps": 0}, "steps"),
        ({"continued": 1}, "continued"),
        (300, "training"),
    ],
    ids=str,
)
def test_a_bad_table_is_refused(table, parameter):
    with raises_code("invalid-input", parameter):
        built(table)
