"""Health, settings, versions and the audit of a bandit, and the forms that change them."""

import math
import typing
from typing import Any, Literal

import msgspec

from submax.bandit.declaring import StoredVersion
from submax.bandit.durable import DurableBandit
from submax.bandit.reading import HOLDOUT, PAUSED, Sums
from submax.bandit.settings import FIXED, MEMORY_ONLY, SETTING_TYPES, Settings
from submax.schema.actions import ActionSpec
from submax.schema.context import Category
from submax.server.pages.charts import added
from submax.server.pages.formats import Shown
from submax.server.pages.overview import alerts, lift_of, unit_of

Kind = Literal["number", "text", "choice", "flag", "value"]
MOST_OPTIONS = 100
"""Arms in a list to choose from; of more, the name is typed."""
MOST_VERSIONS = 200
"""Versions on one page, the newest."""
COUNTS = {
    "decisions": "decisions",
    "learned": "learned from",
    "by default": "of these without a reward",
    "held out": "held out",
    "rewards": "rewards",
    "late rewards": "late rewards",
    "orphans": "rewards without a decision",
    "dropped from quarantine": "rewards dropped from quarantine",
    "never activated": "never activated",
    "without reward": "not learned from, without a reward",
    "paused": "made while paused",
}
"""How pages call the counts of a bandit."""


def health(bandit: DurableBandit) -> Shown:
    """Whether a bandit works as it should."""
    reader, counts, conditions = bandit.read, bandit.counts(), bandit.conditions()
    own = added(sums for part, sums in reader.totals().items() if part not in (HOLDOUT, PAUSED))
    wait = bandit.settings.longest_wait
    return Shown(
        name=bandit.name,
        conditions=conditions,
        alerts=alerts(bandit, [])[: 100 - len(conditions)],
        counts={text: counts[name] for name, text in COUNTS.items() if counts.get(name)},
        pending=counts["decisions"] - counts["matured"],
        # Shortest and longest delay of a bin, with a count.
        histogram=[
            (low, high if math.isfinite(high) else None, count)
            for low, high, count in reader.delay_histogram()
        ],
        delays=reader.delays()[:MOST_OPTIONS],
        wait=wait if math.isfinite(wait) else None,
        smallest=reader.smallest_propensity(),
        effective=own.effective,
        failures=bandit.failures,
        quarantined=reader.early_rewards(20),
        lift=lift_of(bandit),
    )


class SettingField(msgspec.Struct, frozen=True):
    """One field of the form of settings.

    ``name`` is its key in the request, with a point between a table and what is in it. The
    ``kind`` is `number`, `text`, `choice` among the ``options``, `flag`, or `value`: a name, a
    number or JSON. An empty field stands for null, the default. ``consequence`` is what a change
    does beyond the setting itself, which is said before it is sent.
    """

    name: str
    label: str
    about: str
    kind: Kind
    value: str
    options: list[str] = []
    consequence: str = ""


class SettingGroup(msgspec.Struct, frozen=True):
    """Fields under one heading."""

    title: str
    fields: list[SettingField]


def settings_page(bandit: DurableBandit) -> Shown:
    """What is declared of a bandit, and how it can be changed."""
    settings = bandit.settings
    table: dict[str, Any] = msgspec.to_builtins(settings)
    versions, sums = bandit.versions()[::-1], bandit.read.by_version()
    return Shown(
        name=bandit.name,
        unit=unit_of(bandit),
        status=settings.status,
        groups=setting_groups(settings, bandit.menu),
        fixed={name: table[name] for name in FIXED if name not in (*MEMORY_ONLY, "reward_wait")},
        settings=table,
        deciding=bandit.version,
        held=bandit.held,
        total=len(versions),
        versions=[
            _version(one, sums.get(one.version, Sums()), one.version == bandit.version)
            for one in versions[:MOST_VERSIONS]
        ],
        changes=bandit.audit(20),
    )


def _version(one: StoredVersion, sums: Sums, deciding: bool) -> Shown:
    """A version: what it learned from, and what was decided and earned with it."""
    return Shown(
        version=one.version,
        at=one.at,
        policy=one.policy if isinstance(one.policy, str) else str(one.policy.get("kind", "")),
        rows=one.rows,
        base=one.base,
        kept=one.kept,
        deciding=deciding,
        decisions=round(sums.decisions),
        mean=sums.mean,
        error=sums.standard_error,
    )


AGAIN = "Lift and sample ratio begin again from zero."
RENEWED = "Decisions that have not matured wait for the new time."


def setting_groups(settings: Settings, menu: ActionSpec) -> list[SettingGroup]:
    """All fields for the settings that may change at any time, under headings."""
    rails, alarms = settings.guard_rails, settings.alarms
    learning = [
        SettingField(
            "policy", "policy",
            "A name such as rcp-adaptive, or a table in JSON with a kind. The policy is tested "
            "before it is used.",
            "value", _text(settings.policy), [],
            "The next version is fitted by the new policy, from all matured decisions.",
        ),
        *(
            _plain(name, label, settings)
            for name, label in (
                ("reward_wait", "reward wait (seconds)"),
                ("refit_rows", "refit after (decisions)"),
                ("refit_seconds", "refit after (seconds)"),
                ("sticky", "a unit keeps its action"),
                ("seed", "seed"),
                ("keep_versions", "versions kept"),
            )
            if name == "reward_wait" or (name in SETTING_TYPES and name not in FIXED)
        ),
        SettingField(
            "context", "context",
            "Add fields and categories, as a table in JSON; earlier decisions have the default.",
            "value", _text(declared_context(settings)), [],
            "Fields and categories cannot be taken away again.",
        ),
    ]  # fmt: skip
    groups = [
        _action("holdout", rails.holdout, "baseline", rails.baseline, menu),
        _action("control_share", rails.control_share, "control", rails.control, menu),
    ]
    return [
        SettingGroup("Learning", learning),
        SettingGroup(
            "Guard rails",
            [
                SettingField(
                    "guard_rails.minimum", "minimum",
                    "The least probability of every eligible action, so none is forgotten.",
                    "number", _text(rails.minimum),
                ),
                *groups[0],
                *groups[1],
                SettingField(
                    "guard_rails.burn_in", "burn-in", "The first N decisions are random.",
                    "number", _text(rails.burn_in),
                ),
                SettingField(
                    "guard_rails.aa_test", "A/A test",
                    "The policy decides for the holdout too: every difference is then an error.",
                    "flag", "true" if rails.aa_test else "", [], AGAIN,
                ),
            ],
        ),
        SettingGroup(
            "Alarms",
            [
                SettingField(
                    "alarms.false_alarms", "false alarms",
                    "The largest chance of a false alarm within 100,000 decisions.",
                    "number", _text(alarms.false_alarms),
                ),
                SettingField(
                    "alarms.smallest_propensity", "smallest propensity",
                    "A decision with a smaller probability is an alarm. 0: none is.",
                    "number", _text(alarms.smallest_propensity),
                ),
            ],
        ),
    ]  # fmt: skip


def _plain(name: str, label: str, settings: Settings) -> SettingField:
    kind: Kind = "value" if name == "sticky" else "number"
    consequence = RENEWED if name == "reward_wait" else ""
    value = _text(getattr(settings, name))
    return SettingField(name, label, _about(name), kind, value, [], consequence)


def declared_context(settings: Settings) -> dict[str, Any] | None:
    """The fields of the context as they are declared; None without any."""
    context = settings.context
    return {
        name: list(field.values) if isinstance(field, Category) else "number"
        for name, field in zip(context.names, context.fields, strict=True)
    } or None


def _action(
    share: str, value: float, name: str, action: Any, menu: ActionSpec
) -> tuple[SettingField, SettingField]:
    """The fields of a share and of its action: from a list if there are plain arms, else JSON."""
    words = {
        "holdout": "This share of the decisions gets the baseline, to measure the gain.",
        "control_share": "The control gets exactly this share of the decisions.",
    }
    arms = (
        [one.name for one in menu.slots[0].choices if one.status != "retired"] if menu.plain else []
    )
    kind: Kind = "value"
    if menu.plain:
        kind = "choice" if len(arms) <= MOST_OPTIONS else "text"
    label = "control share" if share == "control_share" else share
    return (
        SettingField(
            f"guard_rails.{share}", label, words[share] + " Set both or neither.",
            "number", _text(value), [], AGAIN,
        ),
        SettingField(
            f"guard_rails.{name}", "baseline action" if name == "baseline" else name, "",
            kind, _text(action), ["", *arms] if kind == "choice" else [], AGAIN,
        ),
    )  # fmt: skip


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    whole = isinstance(value, float) and value.is_integer()
    return msgspec.json.encode(int(value) if whole else value).decode()


def _about(name: str) -> str:
    """The description of a setting, as it is declared."""
    for hint in (SETTING_TYPES[name], *typing.get_args(SETTING_TYPES[name])):
        for meta in getattr(hint, "__metadata__", ()):
            if isinstance(meta, msgspec.Meta) and meta.description:
                return meta.description
    return ""
