import pytest
from refusals import raises_code

from submax.evaluation.reading.columns.column_names import find_columns
from submax.schema.choices import ARMS

EXPORT = ["id", "at", "action", "reward", "status", "activated", "holdout", "late_rewards"]


def test_the_usual_names_are_found():
    names = find_columns(
        ["id", "timestamp", "action", "pscore", "reward", "eligible", "context_age", "age"], {}
    )
    assert names.actions == {ARMS: "action"}
    assert (names.reward, names.propensity, names.eligible) == ("reward", "pscore", "eligible")
    assert (names.id, names.time, names.status) == ("id", "timestamp", None)
    assert names.context == {"age": "context_age"}
    assert "age" not in names.used


def test_slots_and_their_propensities_are_found():
    names = find_columns(["action_a", "action_b", "reward", "propensity_a", "propensity_c"], {})
    assert names.actions == {"a": "action_a", "b": "action_b"}
    assert names.slot_propensities == {"a": "propensity_a"}


@pytest.mark.parametrize(
    ("given", "actions"),
    [
        ("x", {ARMS: "x"}),
        (["x", "y"], {"x": "x", "y": "y"}),
        (("x",), {"x": "x"}),
        ({"title": "x"}, {"title": "x"}),
    ],
)
def test_actions_are_named_one_by_one_or_as_a_table(given, actions):
    assert find_columns(["x", "y", "reward"], {"action": given}).actions == actions


@pytest.mark.parametrize("nothing", [None, ""])
def test_none_stands_for_no_column(nothing):
    columns = ["action", "reward", "propensity", "id", "time", "context_age", "eligible"]
    roles = ["propensity", "id", "time", "context", "eligible"]
    names = find_columns(columns, dict.fromkeys(roles, nothing))
    assert names.used == ["action", "reward"]


def test_the_export_of_a_bandit_has_a_status():
    assert find_columns(EXPORT, {}).status == "status"
    assert find_columns(EXPORT, {"status": None}).status is None
    assert find_columns([*EXPORT, "fate"], {"status": "fate"}).status == "fate"
    assert find_columns(["action", "reward", "status"], {}).status is None


@pytest.mark.parametrize(
    ("columns", "given"),
    [
        ([], {}),
        (["action"], {}),
        (["reward"], {}),
        (["action", "reward"], {"rewards": "x"}),
        (["action", "reward", "x"], {"reward": "rewrd"}),
        (["action", "reward"], {"reward": None}),
        (["action", "reward"], {"propensity": ["reward"]}),
        (["action", "reward"], {"reward": []}),
        (["action", "reward"], {"covariate": ["age"]}),
        (["action", "reward"], {"action": 5}),
        (["action", "reward"], {"action": {}}),
        (["action", "reward"], {"context": ["age"]}),
        (["action", "reward"], {"context": {"age": 5}}),
        (["action", "reward", "a", "b", "a"], {}),
    ],
)
def test_columns_that_make_no_sense_are_refused(columns, given):
    with raises_code("invalid-input"):
        find_columns(columns, given)
