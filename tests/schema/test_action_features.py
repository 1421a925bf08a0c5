import numpy as np
import pytest
from refusals import raises_code

from submax.schema.actions import MOST_COLUMNS, ActionSpec, Change
from submax.schema.schema import Schema

SONGS = {
    "A": {"price": 3.0, "genre": "rock"},
    "B": {"price": 2.5, "genre": "jazz"},
    "C": {"price": np.float32(4), "genre": "rock"},
    "D": {"price": True, "genre": "jazz"},
}
NAMES = list(SONGS)
PAGE = {"title": ["A", "B"], "layout": ["wide", "narrow"], "size": (1.0, 2.0)}


def songs():
    return ActionSpec.of(NAMES, SONGS)


def test_categories_become_ones_and_zeros_beside_the_numbers():
    # In the order of the names: genre (jazz, rock), price.
    problem = Schema(menu=songs()).problem
    rows = ((0.0, 1.0, 3.0), (1.0, 0.0, 2.5), (0.0, 1.0, 4.0), (1.0, 0.0, 1.0))
    assert problem.action_features == (rows,)
    assert Schema(menu=ActionSpec.of(NAMES)).problem.action_features == ()


def test_only_active_choices_are_described():
    menu = songs().changed(Change("pause", "A"))
    # No other choice is rock any more, so that C has the mean of the others' genres: jazz.
    assert menu.action_features(menu.active) == (((1.0, 2.5), (1.0, 4.0), (1.0, 1.0)),)


def test_slots_are_described_one_by_one():
    menu = ActionSpec.of(PAGE, {"layout": {"wide": {"columns": 3}, "narrow": {"columns": 1}}})
    assert menu.action_features(menu.active) == ((), ((3.0,), (1.0,)))
    assert menu.features == {"layout": {"wide": {"columns": 3.0}, "narrow": {"columns": 1.0}}}


@pytest.mark.parametrize("features", [SONGS, dict(reversed(SONGS.items()))])
def test_a_menu_is_made_again_from_what_it_declares(features):
    menu = ActionSpec.of(NAMES, features)
    assert ActionSpec.of(menu.declaration, menu.features) == menu == songs()


def test_a_choice_that_is_added_brings_its_features_and_may_bring_a_new_category():
    menu = songs().changed(Change("add", "E", features={"price": 1.0, "genre": "folk"}))
    # As long as it is alone, nothing is known of folk: it counts as the mean of the others.
    assert menu.action_features(menu.active)[0][4] == (0.5, 0.5, 1.0)
    menu = menu.changed(Change("add", "F", features={"price": 2.0, "genre": "folk"}))
    assert menu.action_features(menu.active)[0][4] == (1.0, 0.0, 0.0, 1.0)


def test_a_category_that_is_different_for_every_choice_describes_nothing():
    menu = ActionSpec.of(["A", "B"], {"A": {"title": "one"}, "B": {"title": "two"}})
    assert menu.action_features(menu.active) == ()


def test_features_stay_while_a_choice_is_paused_and_resumed():
    menu = songs().changed(Change("pause", "A"))
    assert menu.features == songs().features
    assert menu.revived == menu.changed(Change("resume", "A")) == songs()


MANY = [str(number) for number in range(2 * (MOST_COLUMNS + 1))]


@pytest.mark.parametrize(
    ("actions", "features", "parameter"),
    [
        (NAMES, {**SONGS, "E": {"price": 1.0, "genre": "rock"}}, None),
        (NAMES, {**SONGS, "C": {"price": 1.0}}, "genre"),
        (NAMES, {**SONGS, "C": {**SONGS["C"], "age": 1}}, "age"),
        (NAMES, {**SONGS, "B": {"price": float("nan"), "genre": "x"}}, "price"),
        (NAMES, {**SONGS, "B": {"price": None, "genre": "x"}}, "price"),
        (NAMES, {**SONGS, "B": {"price": 1e31, "genre": "x"}}, "price"),
        (NAMES, {**SONGS, "B": {"price": 1.0, "genre": 7}}, "genre"),
        (NAMES, {**SONGS, "B": {"price": 1.0, "genre": ""}}, None),
        (NAMES, {**SONGS, "B": {3: 1.0}}, None),
        (NAMES, {**SONGS, "B": 3.0}, "features"),
        (NAMES, {**SONGS, "B": dict.fromkeys(MANY[: MOST_COLUMNS + 1], 1.0)}, "features"),
        (PAGE, [1, 2], "action_features"),
        (PAGE, {"title": [1]}, "action_features"),
        (PAGE, {"titel": {}}, None),
        (PAGE, {"size": {}}, None),
        (PAGE, {"title": {"A": {"x": 1}}}, "action_features"),
        (PAGE, {"title": {"A": {}, "B": {}, "C": {}}}, None),
        (MANY, {name: {"genre": str(int(name) // 2)} for name in MANY}, "features"),
    ],
)
def test_features_that_do_not_fit_are_refused(actions, features, parameter):
    with raises_code("invalid-input", parameter):
        ActionSpec.of(actions, features)


@pytest.mark.parametrize(
    ("menu", "change"),
    [
        (songs(), Change("add", "E")),
        (songs(), Change("add", "E", features={"price": 1.0})),
        (songs(), Change("add", "E", features={"price": 1.0, "genre": 2.0})),
        (songs(), Change("pause", "A", features={"price": 1.0})),
        (ActionSpec.of(["A", "B"]), Change("add", "E", features={"price": 1.0})),
    ],
)
def test_a_change_with_other_features_is_refused(menu, change):
    with raises_code("invalid-input"):
        menu.changed(change)
