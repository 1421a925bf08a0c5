"""What a bandit learned before its first decision: a policy from a log, and the rows of the log."""

import logging
from typing import Any, Literal

import msgspec
import numpy as np

from submax.core.contracts.policy import Policy
from submax.core.errors import ConflictError, InputError
from submax.core.running.state_file import read_state, state_bytes
from submax.live.declaring.settings import Settings
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.bandits import model_name, settings_stream
from submax.live.log.records import CHOICE, HISTORY, PUBLISHED, VERSION, Fitted, History, Published
from submax.live.store.event import Entry
from submax.live.store.store import Store
from submax.schema.choices import Change
from submax.schema.columns import Columns
from submax.schema.learned import Learned, most_rows
from submax.schema.menu import Menu
from submax.schema.model import hash_of
from submax.schema.schema import Schema

LOG = logging.getLogger("submax")
SEGMENT = 65_536
"""Rows that are kept together."""
ENOUGH = 10_000
"""Rows from which later versions learn what the first one did; with fewer they would forget it."""
VERBS: dict[str, Literal["pause", "retire"]] = {"paused": "pause", "retired": "retire"}
"""What makes a choice so."""


def declaration_of(learned: Learned) -> dict[str, Any]:
    """What a bandit that starts from a learned policy is declared with, unless told otherwise."""
    schema = learned.schema
    return {
        "actions": schema.menu.declaration,
        "action_features": schema.menu.features,
        "context": dict(zip(schema.context.names, schema.context.fields, strict=True)),
        "rewards": schema.rewards,
        "policy": _specification(learned),
    }


def check_start(settings: Settings, menu: Menu, learned: Learned, policy: Policy[Any]) -> None:
    """Refuse what does not go together, before anything is written.

    ``menu`` has the choices of the bandit as they stand, ``policy`` is that of the settings.
    """
    _specification(learned)
    _check_schema(settings, menu, learned.schema)
    check_propensities(settings, policy, _without_propensity(learned))
    _check_rows(learned)


def check_choices(menu: Menu, learned: Learned) -> None:
    """Refuse to pause and retire choices as in the log where none would be left active.

    Guard rails that hold for all choices hold for fewer.
    """
    for change in _changes(menu, learned.schema.menu):
        menu = menu.changed(change)


def check_propensities(settings: Settings, policy: Policy[Any], without: int) -> None:
    """Refuse a policy that needs propensities where rows it will learn from have none."""
    if policy.facts.needs_propensities and without:
        raise InputError(
            f"the policy {settings.policy!r} needs propensities, and {without} of the rows that "
            "were learned from have none: learn by this policy, so that they are estimated"
        )


def check_again(
    projection: SettingsProjection, name: str, learned: Learned, history: History
) -> None:
    """Refuse another learned policy than the one that a bandit was started from."""
    before = projection.history
    if before is None:
        return
    # What was written by an earlier submax does not say more than this.
    same = all(
        getattr(before, one) == getattr(history, one)
        for one in ("rows", "segments", "log", "model")
    )
    if not same or not _agrees(projection, learned, history.model):
        raise ConflictError(f"the bandit {name!r} was started from another learned policy")


def history_of(learned: Learned) -> History:
    """What is recorded of a learned policy."""
    return History(
        rows=len(learned.rows.reward),
        segments=[part.hash for part in _parts(learned)],
        log=learned.origin.log,
        model=hash_of(learned.model.to_bytes()),
        without_propensity=_without_propensity(learned),
        estimated_propensities=learned.origin.estimated_propensities,
    )


def start_from(store: Store, name: str, learned: Learned, own: Policy[Any] | None = None) -> None:
    """Make a learned policy the first version, and its rows part of all that follow.

    Choices that were paused or retired in the log are so from the start. The same again changes
    nothing; another one is refused. ``own`` is the bandit's policy where that is an object.
    """
    projection = SettingsProjection.of(store, name)
    settings, menu = projection.settings, projection.menu
    check_start(settings, menu, learned, settings.build_policy(own))
    history = history_of(learned)
    if projection.history is None:
        check_choices(menu, learned)
        # The pieces first: what an entry speaks of must be there.
        for number, part in enumerate(_parts(learned)):
            store.put_blob(_segment_name(name, number, history), state_bytes(part, {}))
        store.put_blob(model_name(name, history.model), learned.model.to_bytes())
        store.append(settings_stream(name), _entries(projection, learned, history)).result()
        projection.follow()
        _say_what_is_left(name, learned)
    check_again(projection, name, learned, history)


def read_history(store: Store, name: str, history: History | None) -> list[Columns]:
    """The rows that a bandit was started with, in parts."""
    if history is None:
        return []
    return [read_segment(store, name, number, history) for number in range(len(history.segments))]


def read_segment(store: Store, name: str, number: int, history: History) -> Columns:
    """One of these parts, if it is what was written."""
    data = store.get_blob(_segment_name(name, number, history))
    try:
        columns: Any = None if data is None else read_state(data)[0]
    except InputError:
        columns = None
    if not isinstance(columns, Columns) or columns.hash != history.segments[number]:
        raise InputError(f"part {number} of what {name} was started with is missing or damaged")
    return columns


def _entries(projection: SettingsProjection, learned: Learned, history: History) -> list[Entry]:
    """Each with a key: of two processes that start at once, the late one changes nothing."""
    number = max(projection.versions, default=0) + 1
    fitted = Fitted(
        version=number,
        model=history.model,
        policy=_specification(learned),
        rows=history.rows,
        learned=0,
        read=0,
        rows_hash=learned.rows.hash,
        seed=learned.origin.seed,
        shown=learned.model.shown,
    )
    published = Published(number, model=history.model)
    return [
        Entry(HISTORY, msgspec.msgpack.encode(history), HISTORY),
        *choice_entries(projection.menu, learned),
        Entry(VERSION, msgspec.msgpack.encode(fitted), f"version {number}"),
        Entry(PUBLISHED, msgspec.msgpack.encode(published), "published history"),
    ]


def choice_entries(menu: Menu, learned: Learned) -> list[Entry]:
    """Entries that pause and retire the choices of ``menu`` that were so in the log."""
    return [
        Entry(CHOICE, msgspec.msgpack.encode(one), f"history {one.slot}\n{one.choice}")
        for one in _changes(menu, learned.schema.menu)
    ]


def _changes(menu: Menu, wanted: Menu) -> list[Change]:
    """What pauses and retires the choices that were so in the log, and are not here."""
    return [
        Change(VERBS[then.status], then.name, slot.name)
        for slot, here in zip(wanted.slots, menu.slots, strict=True)
        # Choices that were added to the bandit come behind those of the log.
        for then, now in zip(slot.choices, here.choices, strict=False)
        if then.status != "active" and now.status not in (then.status, "retired")
    ]


def _agrees(projection: SettingsProjection, learned: Learned, model: str) -> bool:
    """Whether a version with this model is of this policy: two may have learned the same."""
    # As it was written, so that a tuple is the list that it became.
    policy = msgspec.msgpack.decode(msgspec.msgpack.encode(learned.specification))
    found = [one.policy for one in projection.versions.values() if one.model == model]
    return policy in found or not found


def _specification(learned: Learned) -> str | dict[str, Any]:
    if learned.specification is None:
        raise InputError("a bandit starts from a policy that has a name or a file")
    return learned.specification


def _check_schema(settings: Settings, menu: Menu, schema: Schema) -> None:
    """The names and numbers are the same; which choices are active may differ."""
    same = {
        "actions or action features": schema.menu.revived in (settings.menu.revived, menu.revived),
        "contexts": schema.context == settings.context,
        "rewards": schema.scale == settings.scale,
    }
    for what, agrees in same.items():
        if not agrees:
            raise InputError(
                f"the policy was learned for other {what} than those of the bandit: declare the "
                "bandit as the log was read"
            )


def _check_rows(learned: Learned) -> None:
    rows, kept = learned.origin.rows, len(learned.rows.reward)
    needed = min(rows, ENOUGH, most_rows(learned.schema.context.width))
    if kept < needed:
        raise InputError(
            f"the policy was learned from {rows} rows and kept {kept}, so that the next version "
            f"would forget the others: learn again with more --keep-rows, at least {needed}"
        )


def _say_what_is_left(name: str, learned: Learned) -> None:
    rows, kept = learned.origin.rows, len(learned.rows.reward)
    if kept < rows:
        LOG.warning("%s: later versions learn from the last %d of %d rows", name, kept, rows)


def _without_propensity(learned: Learned) -> int:
    return int(np.isnan(learned.rows.log_prob).sum())


def _parts(learned: Learned) -> list[Columns]:
    return [
        learned.rows.rows(slice(first, first + SEGMENT))
        for first in range(0, len(learned.rows.reward), SEGMENT)
    ]


def _segment_name(name: str, number: int, history: History) -> str:
    return f"{name}/history/{history.model[:16]}/{number}"
