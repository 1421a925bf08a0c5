"""Finds out which column of a log has which role."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.summary import listed
from submax.schema.choices import ARMS

ROLES = (
    "action",
    "reward",
    "propensity",
    "context",
    "eligible",
    "id",
    "time",
    "status",
    "cluster",
    "count",
    "successes",
    "weight",
    "session",
    "covariate",
    "probability",
)
"""The roles that a column can have."""
USUAL = {
    "reward": ("reward",),
    "propensity": ("propensity", "pscore"),
    "eligible": ("eligible",),
    "id": ("id",),
    "time": ("at", "time", "timestamp"),
}
"""For each role the names by which its column is found if the caller does not name one."""
ACTION, CONTEXT, PROPENSITY = "action_", "context_", "propensity_"
"""Beginnings of the names of columns that hold slots, context fields and slots' propensities."""
PATTERN_SIGNS = "*?["
"""Signs that make the name of a column a pattern, unless a column has exactly this name."""
STATUS = "status"
"""The column of an export that says what became of each decision."""
EXPORTED = {STATUS, "activated", "holdout", "late_rewards"}
"""A table with all these columns is the export of a bandit, even if its metadata was lost."""


class ColumnNames(msgspec.Struct, frozen=True, kw_only=True):
    """The name of the column of each role; None if there is no such column.

    ``actions`` and ``slot_propensities`` have a column for each slot, ``context`` for each field,
    and ``probabilities`` for each action of every policy whose probabilities are in the log.
    ``outcomes`` are several rewards by name, of which ``reward`` is the first.
    """

    actions: dict[str, str]
    reward: str
    propensity: str | None = None
    slot_propensities: dict[str, str] = {}
    context: dict[str, str] = {}
    eligible: str | None = None
    id: str | None = None
    time: str | None = None
    status: str | None = None
    cluster: str | None = None
    count: str | None = None
    successes: str | None = None
    weight: str | None = None
    outcomes: dict[str, str] = {}
    session: str | None = None
    covariates: dict[str, str] = {}
    probabilities: dict[str, str] = {}

    @property
    def used(self) -> list[str]:
        """The names of all columns that are read."""
        single = (
            self.reward,
            self.propensity,
            self.eligible,
            self.id,
            self.time,
            self.status,
            self.cluster,
            self.count,
            self.successes,
            self.weight,
            self.session,
        )
        several = (
            self.actions,
            self.context,
            self.slot_propensities,
            self.outcomes,
            self.covariates,
            self.probabilities,
        )
        found = [name for table in several for name in table.values()]
        return list(dict.fromkeys([*found, *(name for name in single if name is not None)]))


def find_columns(columns: Sequence[str], given: Mapping[str, Any]) -> ColumnNames:
    """Return the columns that the caller named, and those with the usual names for other roles.

    ``given`` maps roles to columns. For actions and contexts it can be a list of columns or of
    patterns such as ``affinity_*``, or a table from names of slots or fields to columns. None says
    that there is no such column. The status is read only from the export of a bandit, unless the
    caller names its column.
    """
    for role in given:
        one_of("column role", str(role), ROLES)
    twice, times = Counter(columns).most_common(1)[0] if columns else ("", 0)
    if times > 1:
        raise InputError(
            f"the log has {times} columns called {twice!r}: give each column a different name",
            parameter=twice,
        )
    outcomes = _outcomes(columns, given)
    if outcomes:
        given = {**given, "reward": next(iter(outcomes.values()))}
    single = {role: _single(role, columns, given) for role in USUAL}
    successes, count = (_single(role, columns, given) for role in ("successes", "count"))
    if successes is not None:
        _check_successes(given, count)
        single["reward"] = successes
    if single["reward"] is None:
        raise InputError(_missing("reward", columns), parameter="reward")
    actions = _actions(columns, given)
    slots = {slot: f"{PROPENSITY}{slot}" for slot in actions if slot != ARMS}
    exported = STATUS if set(columns) >= EXPORTED else None
    return ColumnNames(
        actions=actions,
        slot_propensities={slot: name for slot, name in slots.items() if name in columns},
        context=_context(columns, given),
        probabilities=_probabilities(columns, given),
        status=_single(STATUS, columns, given) if STATUS in given else exported,
        cluster=_single("cluster", columns, given),
        count=count,
        successes=successes,
        weight=_single("weight", columns, given),
        outcomes=outcomes,
        session=_session(columns, given, count),
        covariates=_covariates(columns, given),
        **single,  # type: ignore[arg-type]  # the reward is not None
    )


def _outcomes(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of several rewards by name; none if one column is given."""
    wanted = given.get("reward")
    if wanted is None or isinstance(wanted, str):
        return {}
    found = _table("reward", columns, wanted)
    if not found:
        raise InputError(_missing("reward", columns), parameter="reward")
    return found


def _session(columns: Sequence[str], given: Mapping[str, Any], count: str | None) -> str | None:
    session = _single("session", columns, given)
    if session is not None and count is not None:
        raise InputError(
            "a column of sessions and one of counts are given, and only one of them is allowed, "
            "because the decisions of a session follow each other: give a row for each decision",
            parameter="session",
        )
    return session


def _covariates(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    wanted = given.get("covariate")
    if wanted in (None, ""):
        return {}
    return _table("covariate", columns, [wanted] if isinstance(wanted, str) else wanted)


def _check_successes(given: Mapping[str, Any], count: str | None) -> None:
    if count is None or given.get("reward") is not None:
        other = "a column of rewards is" if given.get("reward") else "no column of counts is"
        raise InputError(
            f"a column of successes is given and {other}; successes and counts are allowed "
            "together, without rewards: give --column count=NAME --column successes=NAME",
            parameter="successes",
        )


def check_same(what: str, declared: Sequence[str], found: Mapping[str, str]) -> None:
    """Refuse declared slots or fields without a column, and columns that are not declared."""
    for name in declared:
        if name not in found:
            part = f"the {what} {name!r} is" if name else "plain actions are"
            there = listed([one or "plain actions" for one in found], 20) or "none"
            raise InputError(
                f"{part} declared, and the log has no column for it. There are columns for: "
                f"{there}. Name the column, or change the declaration"
            )
    for name in found:
        if name not in declared:
            part = f"the {what} {name!r}, which is" if name else "plain actions, which are"
            raise InputError(
                f"the log has a column for {part} not declared: declare it, or name the columns "
                "to read"
            )


def _single(role: str, columns: Sequence[str], given: Mapping[str, Any]) -> str | None:
    if role not in given:
        return next((name for name in USUAL.get(role, ()) if name in columns), None)
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
        raise InputError(_missing("action", columns), parameter="action")
    return found


def _context(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    if "context" not in given:
        return {name[len(CONTEXT) :]: name for name in columns if name.startswith(CONTEXT)}
    wanted = given["context"]
    if wanted in (None, ""):
        return {}
    return _table("context", columns, [wanted] if isinstance(wanted, str) else wanted)


def _probabilities(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    wanted = given.get("probability")
    if wanted in (None, ""):
        return {}
    return _table("probability", columns, [wanted] if isinstance(wanted, str) else wanted)


def _table(role: str, columns: Sequence[str], wanted: Any) -> dict[str, str]:
    """Return columns by name, from a list of columns or a table from names to columns."""
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
            f"no column matches {wanted!r}, which is given for the {role}. There are: "
            f"{listed(columns)}. Change the pattern, or name the columns",
            parameter=role,
        )
    return found


def _missing(role: str, columns: Sequence[str]) -> str:
    return (
        f"no column is called {role!r}. There are: {listed(columns, 20)}. Say which column is the "
        f"{role}: --column {role}=NAME (columns={{{role!r}: NAME}})"
    )
