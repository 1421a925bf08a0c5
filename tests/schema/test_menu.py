import math

import msgspec
import pytest
from refusals import raises_code

from submax.core.errors import InputError
from submax.core.spaces.arms import Arms
from submax.core.spaces.box import Box
from submax.core.spaces.mixed import Mixed
from submax.core.spaces.slots import Slots
from submax.schema.choices import MOST_CHOICES, Change
from submax.schema.menu import LISTED, MOST_SLOTS, Menu

ARMS = ["A", "B", "C"]
PAGE = {"title": ["A", "B", "C"], "layout": ["wide", "narrow"]}
OFFER = {"title": ["A", "B"], "price": (1.0, 20.0)}


def changed(menu, *changes):
    for change in changes:
        menu = menu.changed(Change(*change))
    return menu


@pytest.mark.parametrize(
    ("actions", "space"),
    [
        (ARMS, Arms(3)),
        (PAGE, Slots((3, 2))),
        ({"price": (1, 20)}, Box((1.0,), (20.0,))),
        ({"price": (1.0, 20.0), "title": ["A", "B"]}, Mixed((2,), (1.0,), (20.0,))),
    ],
)
def test_actions_make_the_space_of_their_kind(actions, space):
    menu = Menu.of(actions)
    assert menu.space(menu.active) == space


@pytest.mark.parametrize(
    ("actions", "action", "row"),
    [
        (ARMS, "C", [2]),
        (PAGE, {"layout": "narrow", "title": "B"}, [1, 1]),
        (OFFER, {"title": "B", "price": 3.5}, [1, 3.5]),
        ({"price": (1.0, 20.0)}, {"price": 20}, [20.0]),
    ],
)
def test_an_action_has_a_row_and_a_row_its_action(actions, action, row):
    menu = Menu.of(actions)
    assert menu.encoded(action) == row
    assert menu.action(row) == action


@pytest.mark.parametrize(
    "actions",
    [
        "ABC",
        5,
        None,
        [],
        {},
        ["A", "A"],
        ["A", ""],
        ["A", 5],
        ["A", None],
        ["A", ["B"]],
        ["A", "B\x00"],
        ["A", "line\nbreak"],
        ["A", "x" * 201],
        {"": ["A"]},
        {5: ["A"]},
        {"title": "AB"},
        {"title": []},
        {"title": ["A", "A"]},
        {"price": (20.0, 1.0)},
        {"price": (1.0, 1.0)},
        {"price": (1.0, math.inf)},
        {"price": (math.nan, 1.0)},
        {"price": (True, False)},
        {"price": (0, 10**400)},
        {"price": (1.0, 2.0, 3.0)},
        [str(number) for number in range(MOST_CHOICES + 1)],
        {str(number): ["A"] for number in range(MOST_SLOTS + 1)},
    ],
    ids=lambda actions: f"{actions!r:.30}",
)
def test_actions_that_make_no_sense_are_refused_in_one_sentence(actions):
    with pytest.raises(InputError) as refused:
        Menu.of(actions)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_names_may_be_in_any_script():
    menu = Menu.of(["日本語", "émile", "🙂"])
    assert [menu.action([number]) for number in range(3)] == ["日本語", "émile", "🙂"]


def test_a_menu_is_the_same_after_it_was_written_and_read():
    menu = changed(Menu.of(PAGE), ("add", "D", "title"), ("retire", "A", "title"))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(menu), type=Menu) == menu


def test_what_is_eligible_is_active_and_asked_for():
    menu = changed(Menu.of(ARMS), ("pause", "A"), ("add", "D"))
    assert menu.active == ((1, 2, 3),)
    assert menu.eligible(None) == menu.active
    assert menu.eligible(["D", "A", "B", "B"]) == ((1, 3),)


def test_slots_that_are_not_named_keep_all_their_choices():
    menu = Menu.of(PAGE)
    assert menu.eligible({"title": ["C"]}) == ((2,), (0, 1))
    assert menu.eligible({}) == menu.active


@pytest.mark.parametrize(
    ("actions", "wanted", "sentence"),
    [
        (ARMS, [], "no choice is eligible"),
        (ARMS, ["Z"], "unknown choice 'Z'"),
        (ARMS, [5], "unknown choice '5'"),
        (ARMS, [["A"]], "unknown choice"),
        (ARMS, "A", "must be a list of names"),
        (ARMS, {"title": ["A"]}, "must be a list of names"),
        (ARMS, 5, "must be a list of names"),
        (PAGE, ["A"], "must be a table of slots"),
        (PAGE, {"colour": ["A"]}, "unknown slot 'colour'"),
        (PAGE, {"title": []}, "no choice is eligible of 'title'"),
        (PAGE, {"title": ["wide"]}, "unknown choice of 'title' 'wide'"),
    ],
)
def test_eligible_names_that_make_no_sense_are_refused(actions, wanted, sentence):
    with raises_code("invalid-input"):
        Menu.of(actions).eligible(wanted)


def test_where_all_that_is_asked_for_is_paused_the_active_ones_are_told():
    menu = changed(Menu.of(ARMS), ("pause", "A"))
    with raises_code("invalid-input"):
        menu.eligible(["A"])


def test_a_choice_keeps_its_number_whatever_happens_to_others():
    menu = changed(Menu.of(ARMS), ("retire", "A"), ("add", "D"), ("pause", "B"), ("add", "E"))
    assert {name: menu.encoded(name) for name in "ABCDE"} == {
        name: [number] for number, name in enumerate("ABCDE")
    }


def test_a_paused_choice_can_be_resumed_and_a_retired_one_cannot():
    menu = changed(Menu.of(ARMS), ("pause", "A"), ("resume", "A"))
    assert menu == Menu.of(ARMS)
    menu = changed(menu, ("retire", "A"))
    for verb in ("pause", "resume", "retire"):
        with raises_code("conflict"):
            changed(menu, (verb, "A"))


@pytest.mark.parametrize("verb", ["pause", "retire", None])
def test_a_name_is_used_once(verb):
    menu = Menu.of(ARMS) if verb is None else changed(Menu.of(ARMS), (verb, "A"))
    with raises_code("conflict"):
        changed(menu, ("add", "A"))


@pytest.mark.parametrize("verb", ["pause", "retire"])
def test_the_last_active_choice_stays(verb):
    menu = changed(Menu.of(PAGE), ("pause", "wide", "layout"))
    with raises_code("conflict"):
        changed(menu, (verb, "narrow", "layout"))


@pytest.mark.parametrize("verb", ["add", "pause", "resume", "retire"])
@pytest.mark.parametrize(
    ("choice", "slot"),
    [
        (5, "title"),
        (None, "title"),
        ("", "title"),
        ("x" * 201, "title"),
        ("\x00", "title"),
        (["A"], "title"),
        ("A", "colour"),
        ("A", 5),
        ("A", None),
        ("A", ""),
    ],
    ids=repr,
)
def test_changes_that_make_no_sense_are_refused(verb, choice, slot):
    with pytest.raises(InputError):
        changed(Menu.of(PAGE), (verb, choice, slot))


@pytest.mark.parametrize("verb", ["pause", "resume", "retire"])
def test_a_choice_that_is_not_there_is_named(verb):
    with raises_code("invalid-input", "choice"):
        changed(Menu.of(ARMS), (verb, "D"))


def test_a_slot_has_no_more_than_so_many_choices():
    menu = Menu.of([str(number) for number in range(MOST_CHOICES)])
    with raises_code("invalid-input"):
        changed(menu, ("add", "more"))


def test_joint_actions_are_listed_up_to_a_number():
    few = {"one": [str(n) for n in range(256)], "two": [str(n) for n in range(256)]}
    assert LISTED == 256**2
    menu = Menu.of(few)
    assert menu.can_list
    assert not changed(menu, ("add", "more", "one")).can_list
    assert changed(menu, ("add", "more", "one"), ("pause", "0", "one")).can_list
    assert not Menu.of(OFFER).can_list


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        (ARMS, "Z"),
        (ARMS, None),
        (ARMS, 0),
        (PAGE, "A"),
        (PAGE, {"title": "A"}),
        (PAGE, {"title": "A", "layout": "wide", "more": "A"}),
        (OFFER, {"title": "A", "price": 20.5}),
        (OFFER, {"title": "A", "price": math.nan}),
        (OFFER, {"title": "A", "price": "2"}),
        (OFFER, {"title": "A", "price": True}),
    ],
    ids=repr,
)
def test_an_action_that_is_not_on_the_menu_has_no_row(actions, action):
    with pytest.raises(InputError):
        Menu.of(actions).encoded(action)
