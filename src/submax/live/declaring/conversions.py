"""Turns what a caller may give as an object into what the store holds."""

from collections.abc import Mapping
from typing import Any

import msgspec

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.live.declaring.alarm_settings import AlarmSettings
from submax.live.declaring.guard_rails import GuardRails
from submax.policies.specification import PolicySpecification
from submax.schema.context_schema import ContextSchema
from submax.schema.reward_parts import declared_rewards


def _guard_rails(given: object) -> GuardRails:
    if given is None:
        return GuardRails()
    if isinstance(given, GuardRails):
        return given
    if isinstance(given, Mapping):
        for key in given:
            one_of("guard rail", str(key), GuardRails.__struct_fields__)
    try:
        return msgspec.convert(given, GuardRails)
    except msgspec.ValidationError as error:
        raise InputError(f"guard_rails: {error}") from error


def _alarms(given: object) -> AlarmSettings:
    if given is None:
        return AlarmSettings()
    if isinstance(given, Mapping):
        for key in given:
            one_of("setting of alarms:", str(key), AlarmSettings.__struct_fields__)
    try:
        return msgspec.convert(given, AlarmSettings)
    except msgspec.ValidationError as error:
        raise InputError(f"alarms: {error}") from error


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
