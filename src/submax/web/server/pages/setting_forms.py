"""The forms by which settings of a bandit are changed in a browser."""

import typing
from typing import Any, Literal

import msgspec

from submax.bandit.settings import FIXED, MEMORY_ONLY, SETTING_TYPES, Settings
from submax.schema.actions import ActionSpec

Kind = Literal["number", "text", "choice", "flag", "value"]
SINGLE = {
    "refit_rows": "rows",
    "refit_seconds": "seconds",
    "sticky": "version, none, or seconds",
    "keep_versions": "versions",
    "archive_after": "seconds",
    "seed": "number",
}
"""Settings that have a form each, with the label of their field."""
MOST_OPTIONS = 100
"""Arms in a list to choose from; of more, the name is typed."""
POLICY = "A name such as rcp-adaptive, or a table in JSON with a kind. It is tried first."


class SettingField(msgspec.Struct, frozen=True):
    """One field of a form.

    ``name`` is its place in the request, with a point between a table and what is in it. The
    ``kind`` is `number`, `text`, `choice` among the ``options``, `flag`, or `value`: a name, a
    number or JSON. An empty field stands for null, the default.
    """

    name: str
    label: str
    kind: Kind
    value: str
    options: list[str] = []


class SettingForm(msgspec.Struct, frozen=True):
    """Settings that are changed together, by one PATCH."""

    title: str
    description: str
    fields: list[SettingField]


def setting_forms(settings: Settings, menu: ActionSpec) -> list[SettingForm]:
    """All forms for the settings that may change at any time."""
    policy = SettingField("policy", "policy", "value", _text(settings.policy))
    single = [
        SettingForm(
            name.replace("_", " "), _description(name), [_field(name, getattr(settings, name))]
        )
        for name in SINGLE
    ]
    return [
        SettingForm("policy", POLICY, [policy]),
        *_rail_forms(settings, menu),
        *single,
        _alarm_form(settings),
    ]


def fixed_settings(settings: Settings) -> dict[str, Any]:
    """Settings that cannot change once the bandit decides."""
    table: dict[str, Any] = msgspec.to_builtins(settings)
    return {name: table[name] for name in FIXED if name not in MEMORY_ONLY}


def _rail_forms(settings: Settings, menu: ActionSpec) -> list[SettingForm]:
    rails = settings.guard_rails
    return [
        SettingForm(
            "least probability",
            "Every eligible action has at least this probability, so that none is forgotten.",
            [_rail("minimum", rails.minimum)],
        ),
        SettingForm(
            "holdout",
            "This share of the decisions gets the baseline and is not learned from, to measure "
            "what the bandit gains. Both belong together.",
            [_rail("holdout", rails.holdout), _action("baseline", rails.baseline, menu)],
        ),
        SettingForm(
            "control",
            "The control has exactly this probability. Both belong together.",
            [_rail("control_share", rails.control_share), _action("control", rails.control, menu)],
        ),
        SettingForm(
            "burn-in",
            "So many decisions at the beginning are drawn uniformly.",
            [_rail("burn_in", rails.burn_in)],
        ),
        SettingForm(
            "A/A test",
            "The holdout is decided by the policy as well: every difference is then an error.",
            [_flag("guard_rails.aa_test", rails.aa_test)],
        ),
    ]


def _alarm_form(settings: Settings) -> SettingForm:
    alarms = settings.alarms
    return SettingForm(
        "alarms",
        "The address to which alarms are sent, the largest chance of a false alarm, and the "
        "probability below which a decision is an alarm.",
        [
            SettingField(
                "alarms.false_alarms", "false alarms", "number", _text(alarms.false_alarms)
            ),
            SettingField(
                "alarms.smallest_propensity",
                "smallest propensity",
                "number",
                _text(alarms.smallest_propensity),
            ),
        ],
    )


def _field(name: str, value: Any) -> SettingField:
    kind: Kind = "value" if name == "sticky" else "number"
    return SettingField(name, SINGLE[name], kind, _text(value))


def _rail(name: str, value: float) -> SettingField:
    label = "share" if name in ("holdout", "control_share") else name.replace("_", " ")
    return SettingField(f"guard_rails.{name}", label, "number", _text(value))


def _flag(name: str, value: bool) -> SettingField:
    return SettingField(name, "switched on", "flag", "true" if value else "")


def _action(name: str, value: Any, menu: ActionSpec) -> SettingField:
    """The choice of an action: from a list if there are plain arms, else as JSON."""
    if not menu.plain:
        return SettingField(f"guard_rails.{name}", name, "value", _text(value))
    arms = [one.name for one in menu.slots[0].choices if one.status != "retired"]
    if len(arms) > MOST_OPTIONS:
        return SettingField(f"guard_rails.{name}", name, "text", value or "")
    return SettingField(f"guard_rails.{name}", name, "choice", value or "", ["", *arms])


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    whole = isinstance(value, float) and value.is_integer()
    return msgspec.json.encode(int(value) if whole else value).decode()


def _description(name: str) -> str:
    """The description of a setting, as it is declared."""
    for hint in (SETTING_TYPES[name], *typing.get_args(SETTING_TYPES[name])):
        for meta in getattr(hint, "__metadata__", ()):
            if isinstance(meta, msgspec.Meta) and meta.description:
                return meta.description
    return ""
