"""Features of the actions of a log."""

import pytest
from refusals import raises_code

from submax.evaluation.log import Log

ROWS = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "propensity": [0.5, 0.5, 0.5]}
FEATURES = {"A": {"price": 3.0, "genre": "rock"}, "B": {"price": 2.0, "genre": "jazz"}}


def described(features, rows=ROWS, **options):
    return Log.read(rows, action_features=features, **options).schema.menu.features


def test_actions_and_the_choices_of_slots_have_features():
    assert described(FEATURES) == FEATURES
    slots = {"action_title": ["A", "B"], "action_layout": ["wide", "wide"], "reward": [1, 0]}
    features = {"title": FEATURES, "layout": {"wide": {"columns": 2.0}}}
    assert described(features, slots) == features
    assert Log.read(ROWS).schema.menu.features is None


def test_an_action_with_features_need_not_be_taken():
    more = {**FEATURES, "Z": {"price": 1.0, "genre": "rock"}}
    assert described(more) == described(more, actions=["A", "B", "Z"]) == more


@pytest.mark.parametrize("actions", [None, ["A", "B"]])
@pytest.mark.parametrize("features", [{"A": FEATURES["A"]}, [FEATURES], "features.csv"])
def test_an_action_without_features_is_refused(features, actions):
    with raises_code("invalid-input"):
        described(features, actions=actions)
