"""One declaration for Python, TOML, HTTP and the store."""

import typing
from datetime import timedelta

import pytest
from refusals import raises_code

from submax.live.declaring.bandit_options import BanditOptions, Declaration
from submax.live.declaring.declared_types import DECLARED_TYPES, PLAIN_FORMS, SETTING_TYPES
from submax.live.declaring.setting_types import FIXED, MEMORY_ONLY, STORE_ONLY
from submax.live.declaring.settings import Settings
from submax.web.server.interface import messages

ARMS = ["A", "B"]


def plain(hint):
    """A type without what only Python callers may give."""
    left = [one for one in typing.get_args(hint) or (hint,) if one is not timedelta]
    if typing.get_origin(hint) is typing.Literal:
        return hint
    return left[0] if len(left) == 1 else typing.Union[tuple(left)]  # noqa: UP007 - of a list


def test_python_callers_declare_the_words_of_the_settings():
    assert set(typing.get_type_hints(Declaration)) == set(DECLARED_TYPES)


@pytest.mark.parametrize("name", sorted(set(SETTING_TYPES) - set(PLAIN_FORMS)))
def test_the_types_of_options_are_those_of_the_settings(name):
    option, setting = typing.get_type_hints(BanditOptions), typing.get_type_hints(Settings)
    assert plain(option[name]) == setting[name]


def test_the_message_of_the_server_has_the_same_words():
    words = set(messages.Create.__struct_fields__) - {"name"}
    assert words == set(DECLARED_TYPES) - set(MEMORY_ONLY)


def test_every_setting_is_described():
    for name, hint in DECLARED_TYPES.items():
        assert name in ("guard_rails", "alarms") or "description=" in repr(hint)


def test_the_groups_of_settings_name_settings():
    assert {*FIXED, *MEMORY_ONLY, *STORE_ONLY} <= set(SETTING_TYPES)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reward_wait": -1}, "reward_wait must be a finite number, 0 or more, not -1"),
        ({"quarantine": 0}, "quarantine must be a finite number above 0, not 0"),
        ({"reward_wait": 2e9}, "reward_wait must be at most 1e\\+09"),
        ({"reward_wait": "soon"}, "reward_wait must be a finite number"),
        ({"refit_rows": 0}, "refit_rows must be a whole number, at least 1, not 0"),
        ({"keep_versions": 1}, "keep_versions must be a whole number, at least 2, not 1"),
        ({"seed": -1}, "seed must be a whole number, at least 0"),
        ({"learn_share": 1.0}, "learn_share must be a number from 0 to below 1"),
    ],
)
def test_values_outside_the_bounds_are_refused(given, message):
    with raises_code("invalid-input"):
        Settings.of({"actions": ARMS, **given})


def test_durations_may_be_timedeltas():
    assert Settings.of({"actions": ARMS, "reward_wait": timedelta(hours=2)}).reward_wait == 7200.0
