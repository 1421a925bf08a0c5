"""Which column of a log is what."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.schema.choices import ARMS

ROLES = ("action", "reward", "propensity", "context", "eligible", "id", "time", "status")
USUAL = {
    "reward": ("reward",),
    "propensity": ("propensity", "pscore"),
    "eligible": ("eligible",),
    "id": ("id",),
    "time": ("at", "time", "timestamp"),
}
"""Names by which a column is found if none is given."""
ACTION, CONTEXT, PROPENSITY = "action_", "context_", "propensity_"
"""Columns of slots, fields and slots' propensities begin so."""
STATUS = "status"
EXPORTED = {STATUS, "activated", "holdout", "late_rewards"}
"""By these the export of a bandit is known, also where it went through another program."""


class ColumnNames(msgspec.Struct, frozen=True, kw_only=True):
    """The column of everything; ``actions`` and ``context`` by the name of slot and field."""

    actions: dict[str, str]
    reward: str
    propensity: str | None = None
    slot_propensities: dict[str, str] = {}
    context: dict[str, str] = {}
    eligible: str | None = None
    id: str | None = None
    time: str | None = None
    status: str | None = None

    @property
    def used(self) -> list[str]:
        """All columns that are read."""
        single = (self.reward, self.propensity, self.eligible, self.id, self.time, self.status)
        several = (self.actions, self.context, self.slot_propensities)
        found = [name for table in several for name in table.values()]
        return list(dict.fromkeys([*found, *(name for name in single if name is not None)]))


def find_columns(columns: Sequence[str], given: Mapping[str, Any]) -> ColumnNames:
    """What the caller said, and the usual names for the rest.

    ``given`` has a column for each role, of slots and fields a list of columns or a table from
    their names to columns; None stands for no column. The export of a bandit also has what became
    of each decision.
    """
    for role in given:
        one_of("role of a column:", str(role), ROLES)
    twice, times = Counter(columns).most_common(1)[0] if columns else ("", 0)
    if times > 1:
        raise InputError(f"the log has {times} columns {twice!r}, and each has its own name")
    single = {role: _single(role, columns, given) for role in USUAL}
    if single["reward"] is None:
        raise InputError(_missing("reward", columns))
    actions = _actions(columns, given)
    slots = {slot: f"{PROPENSITY}{slot}" for slot in actions if slot != ARMS}
    exported = STATUS if set(columns) >= EXPORTED else None
    return ColumnNames(
        actions=actions,
        slot_propensities={slot: name for slot, name in slots.items() if name in columns},
        context=_context(columns, given),
        status=_single(STATUS, columns, given) if STATUS in given else exported,
        **single,  # type: ignore[arg-type]  # the reward is not None
    )


def check_same(what: str, declared: Sequence[str], found: Mapping[str, str]) -> None:
    """Refuse slots or fields that are declared and have no column, or the other way round."""
    for name in declared:
        if name not in found:
            said = f"the {what} {name!r} is" if name else "plain actions are"
            raise InputError(
                f"{said} declared, and the log has no column for that: it has columns for "
                f"{', '.join(one or 'plain actions' for one in found) or 'none'}"
            )
    for name in found:
        if name not in declared:
            said = f"the {what} {name!r}, which is" if name else "plain actions, which are"
            raise InputError(f"the log has a column for {said} not declared")


def _single(role: str, columns: Sequence[str], given: Mapping[str, Any]) -> str | None:
    if role not in given:
        return next((name for name in USUAL.get(role, ()) if name in columns), None)
    wanted = given[role]
    if wanted in (None, ""):
        return None
    if not isinstance(wanted, str):
        raise InputError(f"the column of the {role} is one name, not {wanted!r}")
    one_of(f"column of the log, for the {role}:", wanted, columns)
    return wanted


def _actions(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    wanted = given.get("action")
    if wanted is None and "action" in columns:
        return {ARMS: "action"}
    if wanted is None:
        wanted = {name[len(ACTION) :]: name for name in columns if name.startswith(ACTION)}
    if isinstance(wanted, str):
        wanted = {ARMS: wanted}
    found = _table("action", columns, wanted)
    if not found:
        raise InputError(_missing("action", columns))
    return found


def _context(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    if "context" not in given:
        return {name[len(CONTEXT) :]: name for name in columns if name.startswith(CONTEXT)}
    wanted = given["context"]
    if wanted in (None, ""):
        return {}
    return _table("context", columns, [wanted] if isinstance(wanted, str) else wanted)


def _table(role: str, columns: Sequence[str], wanted: Any) -> dict[str, str]:
    """From a list of columns, or a table of names and columns."""
    if isinstance(wanted, (list, tuple)):
        wanted = {str(name): name for name in wanted}
    if not isinstance(wanted, Mapping):
        raise InputError(f"the columns of the {role} are a list or a table, not {wanted!r}")
    for name in wanted.values():
        one_of(f"column of the log, for the {role}:", str(name), columns)
    return dict(wanted)


def _missing(role: str, columns: Sequence[str]) -> str:
    listed = ", ".join(columns)[:300]
    return (
        f"no column is called {role!r}: name it, --column {role}=NAME "
        f"(columns={{{role!r}: NAME}}); there are: {listed}"
    )
