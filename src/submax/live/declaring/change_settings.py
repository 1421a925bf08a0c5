"""Change the settings of a bandit while it is in use."""

from collections.abc import Mapping
from typing import Any

import msgspec

from submax.bandit.guard_rails import GuardRails
from submax.bandit.settings import SETTING_TYPES, Settings, allows_none
from submax.core.errors import ConflictError, InputError
from submax.core.policy import Policy
from submax.live.declaring.declare import check_options, settings_again
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.bandits import settings_stream
from submax.live.log.records import CHANGED
from submax.live.store.event import Entry
from submax.live.store.store import Store

ATTEMPTS = 20
"""How often a change is tried if other processes change settings at the same moment."""


def change_settings(
    store: Store, name: str, changes: Mapping[str, Any], own: Policy[Any] | None = None
) -> Settings:
    """Change some settings, all or none, and return the settings; others stay as they are.

    They are checked as in a declaration. None stands for the default, unless it is a value of the
    setting. A table of guard rails changes those that it names, and a ``GuardRails`` replaces all.
    ``own`` is the policy if it is given as an object. All processes that have the bandit open use
    the new settings within a second.
    """
    check_options(changes)
    for word in ("actions", "action_features"):
        if word in changes:
            raise InputError(
                f"{word} cannot be set for a bandit that exists: add, pause, resume or retire "
                "choices instead",
                parameter=word,
            )
    if not changes:
        raise InputError("no setting was given: give at least one, such as refit_rows=200")
    for _ in range(ATTEMPTS):
        projection = SettingsProjection.of(store, name)
        given = {
            word: _completed(projection.settings, word, value) for word, value in changes.items()
        }
        settings = settings_again(projection, given, own)
        if settings == projection.settings:
            return settings
        # The key makes a change that another process has made meanwhile come first.
        entry = Entry(CHANGED, msgspec.msgpack.encode(settings), f"after {projection.changed_at}")
        (written,) = store.append(settings_stream(name), [entry]).result()
        if written.new:
            return settings
    raise ConflictError(
        f"the settings of {name!r} were changed by others {ATTEMPTS} times at the same moment: "
        "look at them, and repeat the call if it is still needed"
    )


def _completed(settings: Settings, word: str, value: Any) -> Any:
    """The value of a setting, with what a change leaves open."""
    if word == "guard_rails" and isinstance(value, Mapping):
        before = msgspec.structs.asdict(settings.guard_rails)
        defaults = msgspec.structs.asdict(GuardRails())
        named = {rail: defaults.get(rail) if one is None else one for rail, one in value.items()}
        return {**before, **named}
    if value is None and not allows_none(word):
        return _default(word)
    return value


def _default(word: str) -> Any:
    """The default of a setting."""
    fields = {field.name: field for field in msgspec.structs.fields(Settings)}
    if word not in SETTING_TYPES or word not in fields:
        return None
    field = fields[word]
    return field.default_factory() if field.default is msgspec.NODEFAULT else field.default
