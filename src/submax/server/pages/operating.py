"""Health, settings, versions and the audit of a bandit, and the forms that change them."""

import math
import typing
from typing import Any

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
        kept=one.kept,
        deciding=deciding,
        decisions=round(sums.decisions),
        mean=sums.mean,
        error=sums.standard_error,
    )


AGAIN = "Lift and sample ratio begin again from zero."
FORM: dict[str, tuple[tuple[str, str, str, str, str], ...]] = {
    "Learning": (
        (
            "policy", "policy", "value",
            "A name such as rcp-adaptive, or a table in JSON with a kind. The policy is tested "
            "before it is used.",
            "The next version is fitted by the new policy, from all matured decisions.",
        ),
        (
            "reward_wait", "reward wait (seconds)", "number", "",
            "Decisions that have not matured wait for the new time.",
        ),
        ("refit_rows", "refit after (decisions)", "number", "", ""),
        ("refit_seconds", "refit after (seconds)", "number", "", ""),
        ("sticky", "a unit keeps its action", "value", "", ""),
        ("seed", "seed", "number", "", ""),
        ("keep_versions", "versions kept", "number", "", ""),
        (
            "context", "context", "value",
            "Add fields and categories, as a table in JSON; earlier decisions have the default.",
            "Fields and categories cannot be taken away again.",
        ),
    ),
    "Guard rails": (
        (
            "guard_rails.minimum", "minimum", "number",
            "The least probability of every eligible action, so none is forgotten.", "",
        ),
        (
            "guard_rails.holdout", "holdout", "number",
            "This share of the decisions gets the baseline, to measure the gain. Set both or "
            "neither.", AGAIN,
        ),
        ("guard_rails.baseline", "baseline action", "action", "", AGAIN),
        (
            "guard_rails.control_share", "control share", "number",
            "The control gets exactly this share of the decisions. Set both or neither.", AGAIN,
        ),
        ("guard_rails.control", "control", "action", "", AGAIN),
        ("guard_rails.burn_in", "burn-in", "number", "The first N decisions are random.", ""),
        (
            "guard_rails.aa_test", "A/A test", "flag",
            "The policy decides for the holdout too: every difference is then an error.", AGAIN,
        ),
    ),
    "Alarms": (
        (
            "alarms.false_alarms", "false alarms", "number",
            "The largest chance of a false alarm within 100,000 decisions.", "",
        ),
        (
            "alarms.smallest_propensity", "smallest propensity", "number",
            "A decision with a smaller probability is an alarm. 0: none is.", "",
        ),
    ),
}  # fmt: skip
"""The form of settings: under each heading the fields, each with its key in the request (a point
stands between a table and what is in it), its label, its kind, what is said below it (empty: the
description of the setting), and what a change does beyond the setting, which is said before it is
sent. A ``value`` is a name, a number or JSON. An empty field stands for null, the default."""


def setting_groups(settings: Settings, menu: ActionSpec) -> list[Shown]:
    """All fields for the settings that may change at any time, under headings."""
    return [
        Shown(title=title, fields=[_field(*one, settings, menu) for one in fields])
        for title, fields in FORM.items()
    ]


def _field(
    name: str,
    label: str,
    kind: str,
    about: str,
    consequence: str,
    settings: Settings,
    menu: ActionSpec,
) -> Shown:
    value: Any = declared_context(settings) if name == "context" else settings
    for word in () if name == "context" else name.split("."):
        value = getattr(value, word)
    options: list[str] = []
    if kind == "action":
        # From a list if there are plain arms, else JSON.
        kind = "value"
        if menu.plain:
            arms = [one.name for one in menu.slots[0].choices if one.status != "retired"]
            kind = "choice" if len(arms) <= MOST_OPTIONS else "text"
            options = ["", *arms] if kind == "choice" else []
    return Shown(
        name=name,
        label=label,
        about=about or (_about(name) if "." not in name else ""),
        kind=kind,
        value=("true" if value else "") if kind == "flag" else _text(value),
        options=options,
        consequence=consequence,
    )


def declared_context(settings: Settings) -> dict[str, Any] | None:
    """The fields of the context as they are declared; None without any."""
    context = settings.context
    return {
        name: list(field.values) if isinstance(field, Category) else "number"
        for name, field in zip(context.names, context.fields, strict=True)
    } or None


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
