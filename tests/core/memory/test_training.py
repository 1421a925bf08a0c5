import pytest
from refusals import raises_code

from submax.core.errors import InputError
from submax.core.memory.training import Training
from submax.estimators import ESTIMATORS
from submax.estimators.cvae import CVAE


@pytest.mark.parametrize("name", ["steps", "batch"])
@pytest.mark.parametrize("value", [0, -1, 1.0, True, None, "5"])
def test_bad_counts_are_refused(name, value):
    with raises_code("invalid-input"):
        Training(**{name: value})


@pytest.mark.parametrize("value", [0.0, -0.1, float("nan"), float("inf"), True, None])
def test_a_bad_learning_rate_is_refused(value):
    with raises_code("invalid-input", "learning_rate"):
        Training(learning_rate=value)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), True, None])
def test_a_bad_weight_decay_is_refused(value):
    with raises_code("invalid-input", "weight_decay"):
        Training(weight_decay=value)


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
    ("table", "sentence"),
    [
        ({"stepps": 3}, "unknown key of training of estimator 'cvae': 'stepps': did you mean"),
        ({"steps": 1.5}, "steps of training of estimator 'cvae' must be of type int or 'fitted'"),
        ({"steps": True}, "must be of type int or 'fitted' or 'converged', not True"),
        ({"continued": 1}, "continued of training of estimator 'cvae' must be of type bool, not 1"),
        ({"steps": 0}, "steps must be a whole number, at least 1, not 0"),
        (300, "training of estimator 'cvae' must be of type Training, not 300"),
    ],
    ids=str,
)
def test_a_bad_table_is_refused(table, sentence):
    with pytest.raises(InputError) as error:
        built(table)
    assert sentence in str(error.value)
