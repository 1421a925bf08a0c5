"""Declare a bandit: write down what is new, and compare what stands."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from submax.core.checks import one_of
from submax.core.contracts.policy import Policy
from submax.core.errors import ConflictError, InputError
from submax.live.declaring.declaration import Declaration
from submax.live.declaring.settings import Settings, declared, policy_of
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
from submax.schema.learned import Learned


class ContextIgnoredWarning(UserWarning):
    """A context is declared, and the policy does not look at it."""


def check_words(declaration: Mapping[str, Any]) -> None:
    """Refuse words that mean nothing in a declaration."""
    words = Declaration.__required_keys__ | Declaration.__optional_keys__
    for word in declaration:
        one_of("part of a declaration:", word, words)


def declare(
    store: Store, name: str, declaration: Mapping[str, Any], *, new: bool = False
) -> Policy[Any] | None:
    """Write down what is new; the policy, where it was given as an object.

    With ``new`` a bandit that is there already is refused.
    """
    given = dict(declaration)
    own, stream = _own(given), settings_stream(name)
    before = store.find(stream, "declared")
    if before is None:
        settings = _check(given, name, bandit_names(store))
        entry = Entry(DECLARED, msgspec.msgpack.encode(settings), "declared")
        # Another process may have been first: then its declaration stands, and is compared.
        (written,) = store.append(stream, [entry]).result()
        before, new = written.event, new and not written.new
    if new:
        raise ConflictError(f"there is a bandit {name!r} already")
    projection = SettingsProjection(before, lambda after: store.read(stream, after))
    projection.follow()
    _declare_again(store, stream, projection, given, own)
    _warn(projection.settings, policy_of(projection.settings.policy, own))
    return own


def declare_from(
    store: Store, name: str, learned: Learned, declaration: Mapping[str, Any]
) -> Policy[Any] | None:
    """The same for a bandit that starts from a learned policy, where it is new declared like it.

    Nothing is written unless all goes together.
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


def check_new(name: str, declaration: Mapping[str, Any], learned: Learned | None) -> None:
    """Refuse the declaration of a new bandit where something does not go together."""
    if learned is None:
        _check(declaration, name)
        return
    given = {**declaration_of(learned), **declaration}
    settings = _check(given, name)
    check_start(settings, settings.menu, learned, policy_of(settings.policy, _own(given)))
    check_choices(settings.menu, learned)


def _check_standing(store: Store, name: str, given: Mapping[str, Any], learned: Learned) -> None:
    """The same for a bandit that is there, with the settings as they would be."""
    projection, own = SettingsProjection.of(store, name), _own(given)
    settings = _settings_again(projection, given, own)
    check_start(settings, projection.menu, learned, policy_of(settings.policy, own))
    if projection.history is None:
        check_choices(projection.menu, learned)
    else:
        check_again(projection, name, learned, history_of(learned))


def _own(given: Mapping[str, Any]) -> Policy[Any] | None:
    """The policy, where it is given as an object."""
    policy = given.get("policy")
    return policy if isinstance(policy, Policy) else None


def _check(given: Mapping[str, Any], name: str, others: Sequence[str] = ()) -> Settings:
    """What is declared, if it goes together."""
    if "actions" not in given:
        there = f"; there are: {', '.join(others)}" if others else ""
        raise InputError(
            f"the bandit {name!r} is new here: declare its actions, actions=['A', 'B']{there}"
        )
    settings = declared(**{"context": None, "policy": "rcp-adaptive", "rewards": "binary", **given})
    settings.check(policy_of(settings.policy, _own(given)))
    return settings


def _declare_again(
    store: Store,
    stream: str,
    projection: SettingsProjection,
    given: Mapping[str, Any],
    own: Policy[Any] | None,
) -> None:
    """Compare with what stands, and write down what may change."""
    settings = _settings_again(projection, given, own)
    if settings != projection.settings:
        store.append(stream, [Entry(CHANGED, msgspec.msgpack.encode(settings))]).result()
        projection.follow()


def _settings_again(
    projection: SettingsProjection, given: Mapping[str, Any], own: Policy[Any] | None
) -> Settings:
    """The settings as they stand, but what may change as given, if it goes together."""
    if not given:
        return projection.settings
    menu = projection.settings.menu
    base = {"actions": menu.declaration, "context": None, "policy": "random", "rewards": "binary"}
    again = declared(**{**base, **given})
    if again.menu.declaration != menu.declaration:
        raise InputError(
            "this bandit was declared with other actions: leave them out, and use add, pause and "
            "retire"
        )
    if "action_features" in given and again.menu != menu:
        raise InputError(
            "this bandit was declared with other action_features: leave them out; a choice that is "
            "added brings its own"
        )
    names = [name for name in given if name not in ("actions", "action_features")]
    settings = projection.settings_with(again, names)
    policy = policy_of(settings.policy, own)
    if projection.history is not None:
        check_propensities(settings, policy, projection.history.without_propensity)
    if settings != projection.settings:
        msgspec.structs.replace(settings, menu=projection.menu).check(policy)
    return settings


def _warn(settings: Settings, policy: Policy[Any]) -> None:
    if settings.context.width and not policy.facts.uses_context:
        warnings.warn(
            f"the policy {settings.policy!r} does not look at the context: the default, "
            "rcp-adaptive, does",
            ContextIgnoredWarning,
            stacklevel=4,
        )
