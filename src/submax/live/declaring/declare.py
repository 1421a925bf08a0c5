"""Declare a bandit: write the declaration of a new one, or compare it with the earlier one."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from submax.bandit.settings import DECLARED_TYPES, Settings, suggest_option
from submax.core.checks import one_of
from submax.core.errors import ConflictError, ContextIgnoredWarning, InputError
from submax.core.policy import Policy
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.bandits import bandit_names, settings_stream
from submax.live.log.history import (
    check_again,
    check_choices,
    check_propensities,
    check_start,
    declaration_of,
    history_of,
    start_from,
)
from submax.live.log.records import CHANGED, DECLARED
from submax.live.store.event import Entry
from submax.live.store.store import Store
from submax.schema.trained_policy import TrainedPolicy


def check_options(declaration: Mapping[str, Any]) -> None:
    """Refuse unknown words in a declaration."""
    for word, value in declaration.items():
        if word not in DECLARED_TYPES:
            suggest_option(word, value)
        one_of("setting of a bandit:", word, DECLARED_TYPES)


def declare(
    store: Store, name: str, declaration: Mapping[str, Any], *, new: bool = False
) -> Policy[Any] | None:
    """Write the declaration of a bandit; return its policy if that was given as an object.

    If the bandit exists, settings that may change are changed, and others must agree; with ``new``
    an existing bandit is refused.
    """
    given = dict(declaration)
    own, stream = _own(given), settings_stream(name)
    before = store.find(stream, DECLARED)
    if before is None:
        settings = _check(given, name, bandit_names(store))
        entry = Entry(DECLARED, msgspec.msgpack.encode(settings), DECLARED)
        # If another process was first, its declaration holds, and this one is compared with it.
        (written,) = store.append(stream, [entry]).result()
        before, new = written.event, new and not written.new
    if new:
        raise ConflictError(f"there is a bandit {name!r} already: give another name")
    projection = SettingsProjection(before, lambda after: store.read(stream, after))
    projection.follow()
    projection.check_exists(name)
    _declare_again(store, stream, projection, given, own)
    _warn(projection.settings, projection.settings.build_policy(own))
    return own


def declare_from(
    store: Store, name: str, learned: TrainedPolicy, declaration: Mapping[str, Any]
) -> Policy[Any] | None:
    """Declare a bandit that starts from a learned policy; return what ``declare`` returns.

    A new bandit has the schema and the policy of the learned one, unless the declaration says
    otherwise. If anything contradicts, nothing is written.
    """
    if name in bandit_names(store):
        given = declaration
        _check_standing(store, name, given, learned)
    else:
        given = {**declaration_of(learned), **declaration}
        check_new(name, declaration, learned)
    own = declare(store, name, given)
    start_from(store, name, learned, own)
    return own


def check_new(name: str, declaration: Mapping[str, Any], learned: TrainedPolicy | None) -> None:
    """Refuse the declaration of a new bandit if it contradicts itself or the learned policy."""
    if learned is None:
        _check(declaration, name)
        return
    given = {**declaration_of(learned), **declaration}
    settings = _check(given, name)
    check_start(settings, settings.menu, learned, settings.build_policy(_own(given)))
    check_choices(settings.menu, learned)


def _check_standing(
    store: Store, name: str, given: Mapping[str, Any], learned: TrainedPolicy
) -> None:
    """Refuse a learned policy that does not suit a bandit that exists."""
    projection, own = SettingsProjection.of(store, name), _own(given)
    settings = settings_again(projection, given, own)
    check_start(settings, projection.menu, learned, settings.build_policy(own))
    if projection.history is None:
        check_choices(projection.menu, learned)
    else:
        check_again(projection, name, learned, history_of(learned))


def _own(given: Mapping[str, Any]) -> Policy[Any] | None:
    """The policy of a declaration, if it was given as an object."""
    policy = given.get("policy")
    return policy if isinstance(policy, Policy) else None


def _check(given: Mapping[str, Any], name: str, others: Sequence[str] = ()) -> Settings:
    """The settings of a new bandit, or an error if they contradict each other."""
    if "actions" not in given:
        there = f"; there are: {', '.join(others)}" if others else ""
        raise InputError(
            f"the bandit {name!r} is new here: declare its actions, actions=['A', 'B']{there}",
            parameter="actions",
        )
    settings = Settings.of(given)
    settings.check(settings.build_policy(_own(given)))
    return settings


def _declare_again(
    store: Store,
    stream: str,
    projection: SettingsProjection,
    given: Mapping[str, Any],
    own: Policy[Any] | None,
) -> None:
    """Compare a declaration with the settings of a bandit, and write settings that change."""
    settings = settings_again(projection, given, own)
    if settings != projection.settings:
        store.append(stream, [Entry(CHANGED, msgspec.msgpack.encode(settings))]).result()
        projection.follow()


def settings_again(
    projection: SettingsProjection, given: Mapping[str, Any], own: Policy[Any] | None
) -> Settings:
    """The settings of a bandit with those of a declaration, or an error if they contradict."""
    if not given:
        return projection.settings
    menu = projection.settings.menu
    again = Settings.of({"actions": menu.declaration, **given})
    if again.menu.declaration != menu.declaration:
        raise InputError(
            "this bandit was declared with other actions: leave them out, and use add, pause and "
            "retire",
            parameter="actions",
        )
    if "action_features" in given and again.menu != menu:
        raise InputError(
            "this bandit was declared with other action_features: leave them out; a choice that is "
            "added brings its own",
            parameter="action_features",
        )
    names = [name for name in given if name not in ("actions", "action_features")]
    settings = projection.settings_with(again, names)
    policy = settings.build_policy(own)
    if projection.history is not None:
        check_propensities(settings, policy, projection.history.without_propensity)
    if settings != projection.settings:
        msgspec.structs.replace(settings, menu=projection.menu).check(policy)
    return settings


def _warn(settings: Settings, policy: Policy[Any]) -> None:
    if settings.context.width and not policy.traits.uses_context:
        warnings.warn(
            f"the policy {settings.policy!r} does not look at the context: the default, "
            "rcp-adaptive, does",
            ContextIgnoredWarning,
            stacklevel=4,
        )
