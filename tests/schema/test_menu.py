import math

import pytest
from refusals import raises_code

from submax.core.spaces import Arms, Box, Slots
from submax.schema.actions import LISTED, MOST_CHOICES, MOST_SLOTS, ActionSpec, Change

ARMS = ["A", "B", "C"]
PAGE = {"title": ["A", "B", "C"], "layout": ["wide", "narrow"]}
OFFER = {"title": ["A", "B"], "price": (1.0, 20.0)}


def changed(menu, *changes):
    for change in changes:
        menu = menu.changed(Change(*change))
    return menu


@pytest.mark.parametrize(
    ("actions", "space", "action", "row"),
    [
        (ARMS, Arms(3), "C", [2]),
        (["日本語", "émile", "🙂"], Arms(3), "🙂", [2]),
        (PAGE, Slots((3, 2)), {"layout": "narrow", "title": "B"}, [1, 1]),
        (OFFER, Box((1.0,), (20.0,), (2,)), {"title": "B", "price": 3.5}, [1, 3.5]),
        ({"price": (1, 20)}, Box((1.0,), (20.0,)), {"price": 20}, [20.0]),
    ],
)
def test_actions_make_a_space_and_each_has_a_row(actions, space, action, row):
    menu = ActionSpec.of(actions)
    assert menu.space(menu.active) == space
    assert menu.encoded(action) == row
    assert menu.action(row) == action


def test_what_is_eligible_is_active_and_asked_for():
    menu = changed(ActionSpec.of(ARMS), ("pause", "A"), ("add", "D"))
    assert menu.active == ((1, 2, 3),)
    assert menu.eligible(None) == menu.active
    assert menu.eligible(["D", "A", "B", "B"]) == ((1, 3),)
    # Slots that are not named keep all their choices.
    page = ActionSpec.of(PAGE)
    assert page.eligible({"title": ["C"]}) == ((2,), (0, 1))
    assert page.eligible({}) == page.active


def test_a_choice_keeps_its_number_whatever_happens_to_others():
    menu = changed(ActionSpec.of(ARMS), ("retire", "A"), ("add", "D"), ("pause", "B"), ("add", "E"))
    assert {name: menu.encoded(name) for name in "ABCDE"} == {
        name: [number] for number, name in enumerate("ABCDE")
    }


def test_a_paused_choice_can_be_resumed_and_a_retired_one_cannot_and_a_name_is_used_once():
    menu = changed(ActionSpec.of(ARMS), ("pause", "A"))
    for used in (ActionSpec.of(ARMS), menu):
        with raises_code("conflict"):
            changed(used, ("add", "A"))
    menu = changed(menu, ("resume", "A"))
    assert menu == ActionSpec.of(ARMS)
    menu = changed(menu, ("retire", "A"))
    for verb in ("pause", "resume", "retire", "add"):
        with raises_code("conflict"):
            changed(menu, (verb, "A"))


def test_the_last_active_choice_stays_and_a_slot_has_no_more_than_so_many():
    menu = changed(ActionSpec.of(PAGE), ("pause", "wide", "layout"))
    for verb in ("pause", "retire"):
        with raises_code("conflict"):
            changed(menu, (verb, "narrow", "layout"))
    menu = ActionSpec.of([str(number) for number in range(MOST_CHOICES)])
    with raises_code("invalid-input"):
        changed(menu, ("add", "more"))


def test_joint_actions_are_listed_up_to_a_number():
    few = {"one": [str(n) for n in range(256)], "two": [str(n) for n in range(256)]}
    assert LISTED == 256**2
    menu = ActionSpec.of(few)
    assert menu.can_list
    assert not changed(menu, ("add", "more", "one")).can_list
    assert changed(menu, ("add", "more", "one"), ("pause", "0", "one")).can_list
    assert not ActionSpec.of(OFFER).can_list


@pytest.mark.parametrize(
    "actions",
    [
        "ABC",
        None,
        [],
        {},
        ["A", "A"],
        ["A", ""],
        ["A", ["B"]],
        ["A", "B\x00"],
        ["A", "x" * 201],
        {5: ["A"]},
        {"title": "AB"},
        {"title": ["A", "A"]},
        {"price": (20.0, 1.0)},
        {"price": (math.nan, 1.0)},
        {"price": (True, False)},
        {"price": (0, 10**400)},
        {"price": (1.0, 2.0, 3.0)},
        [str(number) for number in range(MOST_CHOICES + 1)],
        {str(number): ["A"] for number in range(MOST_SLOTS + 1)},
    ],
    ids=lambda actions: f"{actions!r:.30}",
)
def test_actions_that_make_no_sense_are_refused_in_a_short_line(actions):
    with raises_code("invalid-input") as refused:
        ActionSpec.of(actions)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("menu", "wanted", "parameter"),
    [
        (ActionSpec.of(ARMS), [], "eligible"),
        (changed(ActionSpec.of(ARMS), ("pause", "A")), ["A"], "eligible"),
        (ActionSpec.of(ARMS), ["Z"], "choice"),
        (ActionSpec.of(ARMS), [["A"]], "choice"),
        (ActionSpec.of(ARMS), "A", "eligible"),
        (ActionSpec.of(PAGE), ["A"], "eligible"),
        (ActionSpec.of(PAGE), {"colour": ["A"]}, "slot"),
        (ActionSpec.of(PAGE), {"title": []}, "eligible"),
        (ActionSpec.of(PAGE), {"title": ["wide"]}, None),
    ],
)
def test_eligible_names_that_make_no_sense_are_refused(menu, wanted, parameter):
    with raises_code("invalid-input", parameter):
        menu.eligible(wanted)


@pytest.mark.parametrize("verb", ["add", "pause", "resume", "retire"])
@pytest.mark.parametrize(
    ("choice", "slot"),
    [
        (5, "title"),
        ("", "title"),
        ("\x00", "title"),
        (["A"], "title"),
        ("A", "colour"),
        ("A", 5),
        ("A", None),
    ],
    ids=repr,
)
def test_changes_that_make_no_sense_are_refused(verb, choice, slot):
    with raises_code("invalid-input"):
        changed(ActionSpec.of(PAGE), (verb, choice, slot))
    if verb != "add":
        with raises_code("invalid-input", "choice"):
            changed(ActionSpec.of(ARMS), (verb, "D"))


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        (ARMS, "Z"),
        (ARMS, 0),
        (PAGE, "A"),
        (PAGE, {"title": "A"}),
        (PAGE, {"title": "A", "layout": "wide", "more": "A"}),
        (OFFER, {"title": "A", "price": 20.5}),
        (OFFER, {"title": "A", "price": math.nan}),
        (OFFER, {"title": "A", "price": True}),
    ],
    ids=repr,
)
def test_an_action_that_is_not_on_the_menu_has_no_row(actions, action):
    with raises_code("invalid-input"):
        ActionSpec.of(actions).encoded(action)
