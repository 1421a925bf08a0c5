"""The words of a declaration with their types in plain data, as JSON and TOML write them."""

import typing
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from submax.live.declaring.alarm_settings import AlarmSettings
from submax.live.declaring.guard_rails import GuardRails
from submax.live.declaring.setting_types import ChoiceFeatures, FeatureValue, Names
from submax.live.declaring.settings import Settings


class ContextField(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A field of a context: a category if it has ``values``, else a number.

    ``default`` is used if the field is missing, or if its category is unknown.
    """

    values: Names | None = None
    default: str | float | None = None


PLAIN_FORMS: dict[str, Any] = {
    "actions": Annotated[
        Names | dict[str, list[str | float]],
        Meta(description="Names of arms, or a table of slots: names of choices, or [low, high]."),
    ],
    "action_features": Annotated[
        dict[str, dict[str, FeatureValue | ChoiceFeatures]],
        Meta(
            description="A table of arms, each with a table of numbers and texts that describe it; "
            "with slots, a table of slots with such tables."
        ),
    ],
    "context": Annotated[
        dict[str, str | list[str] | ContextField],
        Meta(description="A table of fields: 'number', a list of categories, or a table."),
    ],
    "policy": Annotated[
        str | dict[str, Any],
        Meta(description="The name of a preset such as 'rcp-adaptive', or a table with a 'kind'."),
    ],
    "shadow": Annotated[
        str | dict[str, Any] | None,
        Meta(
            description="A second policy, as in 'policy', that decides beside the first: what it "
            "would have done is logged and compared, and never displayed. None: there is none."
        ),
    ],
    "rewards": Annotated[
        str | dict[str, Any],
        Meta(
            description="The scale of the rewards: its name, or a table with a 'kind'; or a table "
            "of names and weights for several rewards; or 'slots' for one of each slot."
        ),
    ],
    "guard_rails": GuardRails,
    "alarms": AlarmSettings,
}
"""How JSON and TOML write the settings that Python callers may give as objects."""
SETTING_TYPES: dict[str, Any] = {
    name: hint
    for name, hint in typing.get_type_hints(Settings, include_extras=True).items()
    if name != "menu"
}
"""The settings with their types, bounds and descriptions."""
DECLARED_TYPES: dict[str, Any] = {**SETTING_TYPES, **PLAIN_FORMS}
"""All words of a declaration with their types in plain data."""


def allows_none(name: str) -> bool:
    """Whether None is a value of a setting, and not only a way to leave it out."""
    return type(None) in typing.get_args(SETTING_TYPES.get(name))
