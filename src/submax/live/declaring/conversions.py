"""Turns what a caller may give as an object into what the store holds."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.live.declaring.alarm_settings import AlarmSettings
from submax.live.declaring.guard_rails import GuardRails
from submax.policies.specification import PolicySpecification
from submax.schema.context_schema import ContextSchema
from submax.schema.known_type import known_type
from submax.schema.reward_parts import declared_rewards

Part = TypeVar("Part", GuardRails, AlarmSettings)


def _guard_rails(given: object) -> GuardRails:
    return _converted(given, GuardRails, "guard_rails", "guard rail")


def _alarms(given: object) -> AlarmSettings:
    return _converted(given, AlarmSettings, "alarms", "setting of alarms:")


def _converted(given: object, kind: type[Part], setting: str, word: str) -> Part:
    """The settings of ``kind`` that a table or an object gives; the defaults if it is None.

    In errors, ``setting`` is the name of the whole, and ``word`` says what a key of the table is.
    """
    if given is None:
        return kind()
    if isinstance(given, Mapping):
        for key in given:
            one_of(word, str(key), kind.__struct_fields__)
    try:
        return msgspec.convert(given, known_type(kind))
    except msgspec.ValidationError as error:
        raise InputError(f"{setting}: {error}") from error


def _shadow(given: object) -> str | dict[str, Any] | None:
    if given is None:
        return None
    specification = PolicySpecification.of(given)
    if specification.is_object:
        raise InputError(
            f"the shadow was given as {given!r:.80}, which no table can describe, so that it could "
            "not be made again: give a name, or a table {'kind': 'my_policy.py:MyPolicy'}"
        )
    return specification.data


CONVERSIONS: dict[str, Any] = {
    "context": ContextSchema.of,
    "policy": lambda policy: PolicySpecification.of(policy).data,
    "shadow": _shadow,
    "rewards": declared_rewards,
    "guard_rails": _guard_rails,
    "alarms": _alarms,
}
"""How a value that a caller may give as an object becomes the one that the store holds."""
