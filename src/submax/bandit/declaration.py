"""A declaration: the settings of a new bandit, how they and its choices change, how it starts.

All functions are pure: they return what a bandit becomes, or raise an error and change nothing.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from submax.bandit.guard_rails import DEFAULT_RAMP, LONGEST_RAMP, GuardRails, Ramp
from submax.bandit.settings import (
    DECLARED_TYPES,
    FIXED,
    SETTING_TYPES,
    STORE_ONLY,
    Settings,
    allows_none,
)
from submax.core.checks import did_you_mean, whole_number
from submax.core.errors import ContextIgnoredWarning, InputError
from submax.core.policy import Policy
from submax.schema.actions import LISTED, ActionSpec, Change
from submax.schema.trained_policy import TrainedPolicy, most_rows

ENOUGH_ROWS = 10_000
"""A trained policy must have kept this many rows, or all it had: later versions are fitted to these
rows, and with fewer they would forget what the policy had learned."""
VERBS: dict[str, Literal["pause", "retire"]] = {"paused": "pause", "retired": "retire"}
"""The verb of the change that gives a choice this status."""


def check_options(declaration: Mapping[str, Any], refused: Sequence[str] = ()) -> None:
    """Refuse unknown words in a declaration, and settings of the other kind of bandit."""
    for word, value in declaration.items():
        if word in refused:
            kind = "with a store" if word in STORE_ONLY else "in memory"
            raise InputError(
                f"{word} is a setting of bandits {kind}: leave it out; a bandit in memory has "
                "learn_share, and one with a store refit_rows and refit_seconds",
                parameter=word,
            )
        if word in GuardRails.__struct_fields__:
            raise InputError(
                f"{word} is one of the guard rails: write guard_rails={{{word!r}: {value!r:.40}}}",
                parameter=word,
            )
        if word not in DECLARED_TYPES:
            allowed = ", ".join(sorted(DECLARED_TYPES))
            hint = did_you_mean(word, DECLARED_TYPES) or (
                f"a parameter of a policy belongs in policy={{'kind': …, {word!r}: …}}; "
            )
            raise InputError(
                f"{word!r} is not a setting of a bandit: {hint}allowed: {allowed}",
                parameter=word,
            )


def custom_policy(given: Mapping[str, Any]) -> Policy[Any] | None:
    """The policy of a declaration, if it was given as an object."""
    policy = given.get("policy")
    return policy if isinstance(policy, Policy) else None


def new_settings(
    name: str,
    declaration: Mapping[str, Any],
    trained: TrainedPolicy | None = None,
    others: Sequence[str] = (),
) -> Settings:
    """The settings of a new bandit; an error if they contradict each other or the policy.

    With a ``trained`` policy the bandit has its schema and policy, unless the declaration says
    otherwise. ``others`` are the names of the bandits that exist.
    """
    given = {**({} if trained is None else declaration_of(trained)), **declaration}
    if "actions" not in given:
        known = f"; there are: {', '.join(others)}" if others else ""
        raise InputError(
            f"the bandit {name!r} is new here: declare its actions, actions=['A', 'B']{known}",
            parameter="actions",
        )
    settings = Settings.of(given)
    policy = settings.build_policy(custom_policy(given))
    settings.check(policy)
    if trained is not None:
        check_start(settings, settings.menu, trained, policy)
        with_status_of(settings.menu, trained)
    return settings


def warn_if_context_is_ignored(settings: Settings, policy: Policy[Any]) -> None:
    """Warn if a context is declared and the policy does not look at it."""
    if settings.context.width and not policy.traits.uses_context:
        warnings.warn(
            f"the policy {settings.policy!r} ignores the context: the default, "
            "rcp-adaptive, uses it",
            ContextIgnoredWarning,
            stacklevel=4,
        )


def changed_settings(
    settings: Settings,
    changes: Mapping[str, Any],
    free: Sequence[str] = (),
    *,
    again: bool = False,
) -> Settings:
    """The settings after a change of some of them, all or none; others stay as they are.

    None stands for the default, unless it is a value of the setting. A table of guard rails changes
    those that it names, and a ``GuardRails`` replaces all. If it is the bandit's declaration that
    was given ``again``, its actions must be the same ones. ``free`` are settings that may change
    although FIXED names them. The caller checks the result with the policy and the current choices,
    by ``Settings.check``.
    """
    check_options(changes)
    if not changes:
        raise InputError("give at least one setting, such as seed=1")
    given = dict(changes)
    if not again:
        given = {word: _completed(settings, word, value) for word, value in given.items()}
    declared = Settings.of({"actions": settings.menu.declaration, **given})
    for word, same in (
        ("actions", again and declared.menu.declaration == settings.menu.declaration),
        ("action_features", again and declared.menu == settings.menu),
    ):
        if given.pop(word, None) is not None and not same:
            raise InputError(
                f"this bandit was declared with other {word}, which cannot be set: leave "
                "them out; add, pause, resume or retire choices instead",
                parameter=word,
            )
    for word in given:
        old, new = getattr(settings, word), getattr(declared, word)
        if old != new and word in FIXED and word not in free:
            raise InputError(
                f"{word} was given as {new}, and this bandit was declared with {old}, which cannot "
                "change once it decides: leave it out, or open a bandit with another name",
                parameter=word,
            )
    values = {word: getattr(declared, word) for word in given}
    if "context" in values:
        values["context"] = settings.context.extended(declared.context)
    return msgspec.structs.replace(settings, **values)


def _completed(settings: Settings, word: str, value: Any) -> Any:
    """The value of a setting, with what a change leaves open."""
    if word == "guard_rails" and isinstance(value, Mapping):
        defaults = msgspec.structs.asdict(GuardRails())
        named = {rail: defaults.get(rail) if one is None else one for rail, one in value.items()}
        return {**msgspec.structs.asdict(settings.guard_rails), **named}
    if word == "context" and isinstance(value, Mapping):
        return {**settings.context.table, **value}
    if value is None and word in SETTING_TYPES and not allows_none(word):
        field = next(one for one in msgspec.structs.fields(Settings) if one.name == word)
        return field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return value


def changed_choices(
    settings: Settings, menu: ActionSpec, ramps: tuple[Ramp, ...], change: Change, decided: int
) -> tuple[ActionSpec, tuple[Ramp, ...]]:
    """The choices and ramps after a change, when so many decisions were made."""
    changed = menu.changed(change)
    settings.guard_rails.check(changed)
    if change.verb in ("add", "retire"):
        place = changed.place(change)
        ramps = tuple(ramp for ramp in ramps if ramp.place != place)
    if change.verb == "add":
        ramps += _new_ramp(change, changed, decided)
    return changed, ramps


def _new_ramp(change: Change, menu: ActionSpec, decided: int) -> tuple[Ramp, ...]:
    """The ramp of a choice that is added: by default over as many decisions as were made."""
    if change.ramp is not None:
        whole_number("ramp", change.ramp, at_least=0, at_most=LONGEST_RAMP)
    if not menu.can_list:
        if change.ramp:
            raise InputError(
                f"ramp needs at most {LISTED} joint actions without real-valued parts: "
                "leave it out",
                parameter="ramp",
            )
        return ()
    length = min(DEFAULT_RAMP, decided) if change.ramp is None else change.ramp
    return (Ramp(menu.place(change), length, decided),) if length else ()


def declaration_of(trained: TrainedPolicy) -> dict[str, Any]:
    """The declaration of a bandit that starts from a trained policy, if the caller gives none."""
    schema = trained.schema
    return {
        "actions": schema.menu.declaration,
        "action_features": schema.menu.features,
        "context": dict(zip(schema.context.names, schema.context.fields, strict=True)),
        "rewards": schema.rewards,
        "policy": specification_of(trained),
    }


def specification_of(trained: TrainedPolicy) -> str | dict[str, Any]:
    """The name or table of a trained policy; an error if it was given as an object."""
    if trained.specification is None:
        raise InputError(
            "a bandit cannot start from a learned policy that was given as an object: "
            "learn again with a name or a table, {'kind': 'my_policy.py:MyPolicy'}"
        )
    return trained.specification


def check_start(
    settings: Settings, menu: ActionSpec, trained: TrainedPolicy, policy: Policy[Any]
) -> None:
    """Refuse a trained policy that does not suit a bandit; the status of choices may differ.

    ``menu`` has the current choices of the bandit, ``policy`` is the one of its settings.
    """
    specification_of(trained)
    schema = trained.schema
    for what, agrees in (
        ("actions or features", schema.menu.revived in (settings.menu.revived, menu.revived)),
        ("contexts", schema.context == settings.context),
        ("rewards", schema.scale == settings.scale),
    ):
        if not agrees:
            raise InputError(
                f"the policy was learned for other {what} than those of the bandit: declare "
                "the bandit with the schema of the log"
            )
    check_propensities(settings, policy, without_propensity(trained))
    rows, kept = trained.origin.rows, len(trained.rows.reward)
    needed = min(rows, ENOUGH_ROWS, most_rows(schema.context.width))
    if kept < needed:
        raise InputError(
            f"the policy was learned from {rows} rows and kept {kept}, so the next "
            "version would forget the others: learn again with --keep-rows of at least "
            f"{needed}"
        )


def check_propensities(settings: Settings, policy: Policy[Any], without: int) -> None:
    """Refuse a policy that needs propensities if rows that it will learn from have none."""
    if policy.traits.needs_propensities and without:
        raise InputError(
            f"the policy {settings.policy!r} needs propensities, and {without} of the "
            "rows that were learned from have none: learn from the log with this "
            "policy, which estimates them"
        )


def without_propensity(trained: TrainedPolicy) -> int:
    """The number of rows of a trained policy whose propensity is unknown."""
    return int(np.isnan(trained.rows.log_prob).sum())


def with_status_of(menu: ActionSpec, trained: TrainedPolicy) -> ActionSpec:
    """The choices after pausing and retiring those that were so in the log."""
    for slot, here in zip(trained.schema.menu.slots, menu.slots, strict=True):
        # Choices that were added to the bandit come after those of the log.
        for then, now in zip(slot.choices, here.choices, strict=False):
            if then.status != "active" and now.status not in (then.status, "retired"):
                menu = menu.changed(Change(VERBS[then.status], then.name, slot.name))
    return menu
