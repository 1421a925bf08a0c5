"""Which column of a log has which role."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.summary import listed
from submax.schema.actions import ARMS

USUAL: dict[str, tuple[str, ...]] = {
    "reward": ("reward",),
    "propensity": ("propensity", "pscore"),
    "eligible": ("eligible",),
    "id": ("id",),
    "time": ("at", "time", "timestamp"),
    **dict.fromkeys(("status", "cluster", "count", "successes", "weight", "session"), ()),
}
"""The roles of single columns, with the names by which a column is found if none is given."""
SEVERAL = {"covariate": "covariates", "probability": "probabilities"}
"""Roles that several columns can have, and the fields of ``ColumnNames`` that hold them."""
ROLES = ("action", "context", *USUAL, *SEVERAL)
"""The roles that a column can have."""
ACTION, CONTEXT, PROPENSITY = "action_", "context_", "propensity_"
"""Beginnings of the names of columns that hold slots, context fields and slots' propensities."""
PATTERN_SIGNS = "*?["
"""Signs that make the name of a column a pattern, unless a column has exactly this name."""
EXPORTED = {"status", "activated", "holdout", "late_rewards"}
"""A table with all these columns is the export of a bandit, even if its metadata was lost."""


class ColumnNames(msgspec.Struct, frozen=True, kw_only=True):
    """The name of the column of each role; None if there is no such column.

    ``actions`` and ``slot_propensities`` have a column for each slot, ``context`` for each field,
    and ``probabilities`` for each action of every policy whose probabilities are in the log.
    ``outcomes`` are several rewards by name, of which ``reward`` is the first.
    """

    actions: dict[str, str]
    context: dict[str, str] = {}
    slot_propensities: dict[str, str] = {}
    outcomes: dict[str, str] = {}
    covariates: dict[str, str] = {}
    probabilities: dict[str, str] = {}
    reward: str
    propensity: str | None = None
    eligible: str | None = None
    id: str | None = None
    time: str | None = None
    status: str | None = None
    cluster: str | None = None
    count: str | None = None
    successes: str | None = None
    weight: str | None = None
    session: str | None = None

    @property
    def used(self) -> list[str]:
        """The names of all columns that are read."""
        found: list[str | None] = []
        for value in msgspec.structs.astuple(self):
            found += value.values() if isinstance(value, dict) else [value]
        return [name for name in dict.fromkeys(found) if name is not None]


def find_columns(columns: Sequence[str], given: Mapping[str, Any]) -> ColumnNames:
    """Return the columns that the caller named, and those with the usual names for other roles.

    ``given`` maps roles to columns. For actions, contexts and rewards it can be a list of columns
    or of patterns such as ``affinity_*``, or a table from names to columns. None says that there is
    no such column. The status is read only from the export of a bandit, unless the caller names its
    column.
    """
    for role in given:
        one_of("column role", str(role), ROLES)
    twice, times = Counter(columns).most_common(1)[0] if columns else ("", 0)
    if times > 1:
        raise InputError(
            f"the log has {times} columns called {twice!r}: give each column a different name",
            parameter=twice,
        )
    outcomes: dict[str, str] = {}
    if not isinstance(given.get("reward"), str | None):
        outcomes = _table("reward", columns, given["reward"])
        given = {**given, "reward": next(iter(outcomes.values()), None)}
    if "status" not in given and set(columns) >= EXPORTED:
        given = {**given, "status": "status"}
    single: dict[str, Any] = {role: _single(role, columns, given) for role in USUAL}
    if single["successes"] is not None:
        if single["count"] is None or given.get("reward") is not None:
            other = "a column of rewards is" if given.get("reward") else "no column of counts is"
            raise InputError(
                f"a column of successes is given and {other}: name counts and successes, "
                "without rewards, --column count=NAME --column successes=NAME",
                parameter="successes",
            )
        single["reward"] = single["successes"]
    if single["reward"] is None:
        raise _missing("reward", columns)
    if single["session"] is not None and single["count"] is not None:
        raise InputError(
            "a log with sessions cannot have counts, because the decisions of a "
            "session follow each other: give a row for each decision",
            parameter="session",
        )
    wanted = given.get("action") or (
        "action" if "action" in columns else _beginning(ACTION, columns)
    )
    actions = _table("action", columns, {ARMS: wanted} if isinstance(wanted, str) else wanted)
    if not actions:
        raise _missing("action", columns)
    slots = {slot: f"{PROPENSITY}{slot}" for slot in actions if slot != ARMS}
    for role, field in SEVERAL.items():
        single[field] = _several(role, columns, given)
    return ColumnNames(
        actions=actions,
        slot_propensities={slot: name for slot, name in slots.items() if name in columns},
        context=context_columns(columns, given),
        outcomes=outcomes,
        **single,
    )


def context_columns(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of each field of the context, by the name of the field."""
    return (
        _several("context", columns, given) if "context" in given else _beginning(CONTEXT, columns)
    )


def check_same(what: str, declared: Sequence[str], found: Mapping[str, str]) -> None:
    """Refuse declared slots or fields without a column, and columns that are not declared."""
    for name in declared:
        if name not in found:
            part = f"the {what} {name!r} is" if name else "plain actions are"
            there = listed([one or "plain actions" for one in found], 20) or "none"
            raise InputError(
                f"{part} declared, but the log has no column for it. There are columns for: "
                f"{there}. Name the column, or change the declaration"
            )
    for name in found:
        if name not in declared:
            part = f"the {what} {name!r}, which is" if name else "plain actions, which are"
            raise InputError(
                f"the log has a column for {part} not declared: declare it, or name the columns "
                "to read"
            )


def _beginning(prefix: str, columns: Sequence[str]) -> dict[str, str]:
    return {name[len(prefix) :]: name for name in columns if name.startswith(prefix)}


def _single(role: str, columns: Sequence[str], given: Mapping[str, Any]) -> str | None:
    if role not in given:
        return next((name for name in USUAL[role] if name in columns), None)
    wanted = given[role]
    if wanted in (None, ""):
        return None
    if not isinstance(wanted, str):
        raise InputError(
            f"the column of the {role} is {wanted!r}, and must be the name of one column",
            parameter=role,
        )
    one_of(f"column for the {role}", wanted, columns)
    return wanted


def _several(role: str, columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    wanted = given.get(role)
    if wanted in (None, ""):
        return {}
    return _table(role, columns, [wanted] if isinstance(wanted, str) else wanted)


def _table(role: str, columns: Sequence[str], wanted: Any) -> dict[str, str]:
    """Return columns by name, from a list of columns and patterns, or a table of columns."""
    if isinstance(wanted, (list, tuple)):
        wanted = {name: name for one in wanted for name in _matching(role, columns, str(one))}
    if not isinstance(wanted, Mapping):
        raise InputError(
            f"the columns of the {role} are {wanted!r}, and must be a list of columns or a table "
            "from names to columns",
            parameter=role,
        )
    for name in wanted.values():
        one_of(f"column for the {role}", str(name), columns)
    return dict(wanted)


def _matching(role: str, columns: Sequence[str], wanted: str) -> list[str]:
    """Return the columns that match a pattern such as ``affinity_*``; a name is itself."""
    if wanted in columns or not any(sign in wanted for sign in PATTERN_SIGNS):
        return [wanted]
    found = [name for name in columns if fnmatchcase(name, wanted)]
    if not found:
        raise InputError(
            f"no column matches {wanted!r}, the pattern for the {role}. There are: "
            f"{listed(columns)}. Change the pattern, or name the columns",
            parameter=role,
        )
    return found


def _missing(role: str, columns: Sequence[str]) -> InputError:
    similar = next((name for name in columns if role_of_similar(name) == role), "NAME")
    return InputError(
        f"no column is called {role!r}. There are: {listed(columns, 20)}. Say which column is the "
        f"{role}: --column {role}={similar} (columns={{{role!r}: {similar!r}}})",
        parameter=role,
    )


def role_of_similar(name: str) -> str | None:
    """Return the role whose usual name differs from this one only by capitals or spaces.

    >>> role_of_similar("Reward ")
    'reward'
    """
    usual = {**USUAL, "action": ("action",)}
    plain = name.strip().lower()
    return next((role for role, names in usual.items() if plain in names and plain != name), None)
