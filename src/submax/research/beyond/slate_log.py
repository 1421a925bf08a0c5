"""A log of ranked lists (slates), with a reward at every position."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.problem import PROBABILITY_TOLERANCE
from submax.evaluation.cells import CheckedColumns
from submax.evaluation.reading import numbered
from submax.evaluation.sources import open_source

EMPTY = -1
"""The item at a position that a slate does not have."""


@dataclass(frozen=True, eq=False)
class Slates:
    """n slates with up to K positions; arrays are ``[n, K]``.

    ``item`` is the index, in ``items``, of the item at each position (``EMPTY`` if a slate is
    shorter), and ``reward`` its reward, such as a click. ``propensity`` is the logging policy's
    probability of the item at its position, given the items above it. ``marginal`` is the
    probability of the item at its position whatever is above, if it is known. ``given`` are the
    probabilities of other policies by name, given the items above; ``given_marginal`` without
    them. ``cluster [n]`` is the number of the cluster (such as a user) of each slate.
    """

    items: tuple[str, ...]
    item: Integers
    reward: Floats
    propensity: Floats
    marginal: Floats | None = None
    given: Mapping[str, Floats] = field(default_factory=dict)
    given_marginal: Mapping[str, Floats] = field(default_factory=dict)
    cluster: Integers | None = None

    def __len__(self) -> int:
        return len(self.item)

    @property
    def positions(self) -> int:
        """The number of positions, K."""
        return int(self.item.shape[1])

    @property
    def filled(self) -> Booleans:
        """Which positions the slates have, ``[n, K]``."""
        return self.item != EMPTY

    @property
    def fingerprint(self) -> str:
        """A hash of the items and rewards of all slates, without propensities."""
        digest = hashlib.sha256(repr(self.items).encode())
        for column in (self.item, self.reward):
            digest.update(repr((column.shape, column.dtype.str)).encode())
            digest.update(np.ascontiguousarray(column).data)
        return digest.hexdigest()

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        columns: Mapping[str, str] | None = None,
        policies: Mapping[str, str] | None = None,
    ) -> Self:
        """Read slates from a file, a data frame or a table, with a row for each position.

        ``columns`` maps roles to names of columns, which by default have the names of their roles:
        slate (the id of a list), position (a whole number, from the top), action (the item),
        reward, propensity (given the items above), marginal (the propensity whatever is above)
        and cluster; the last two may be absent.

        ``policies`` maps names of other policies to the column that has their probability of the
        item, given the items above. The probability whatever is above is in a column with the same
        name and the ending ``_marginal``, if there is one.

        >>> table = {"slate": [1, 1, 2, 2], "position": [1, 2, 1, 2],
        ...          "action": ["A", "B", "B", "A"], "reward": [1, 0, 0, 1],
        ...          "propensity": [0.5, 1.0, 0.5, 1.0]}
        >>> Slates.read(table).item.tolist()
        [[0, 1], [1, 0]]
        """
        return cls(**read_slates(source, columns or {}, policies or {}))


ROLES = ("slate", "position", "action", "reward", "propensity", "marginal", "cluster")
"""The roles that a column can have."""
PROBABILITIES = ("propensity", "marginal")
"""Roles of columns that hold probabilities of the logging policy."""
OPTIONAL = ("marginal", "cluster")
"""Roles without which a log can be read."""
MARGINAL = "_marginal"
"""Ending of the column that has a policy's probability of an item whatever is above it."""
MOST_POSITIONS = 1000
"""The longest slate: longer ones are more likely a column that does not hold positions."""


def read_slates(
    source: Any, columns: Mapping[str, str], policies: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values of the fields of ``Slates``."""
    opened = open_source(source)
    names = _names(opened.columns, columns)
    probabilities = {name: column for name, column in names.items() if name in PROBABILITIES}
    for name, column in policies.items():
        one_of(f"column of the policy {name!r}:", column, opened.columns)
        probabilities[f"given {name}"] = column
        if f"{column}{MARGINAL}" in opened.columns:
            probabilities[f"marginal {name}"] = f"{column}{MARGINAL}"
    sql = CheckedColumns(opened)
    wanted = {"position": sql.number(names["position"])}
    fraction = f"{wanted['position']} <> round({wanted['position']})"
    sql.check(names["position"], "is not a whole number", fraction)
    item = sql.name(names["action"], "is missing: an item is needed")
    wanted["reward"] = sql.number(names["reward"])
    for role in ("slate", "cluster"):
        if role in names:
            wanted[role] = sql.identifier(names[role])
    for name, column in probabilities.items():
        wanted[name] = value = sql.number(column)
        low = "<" if name.startswith(("given", "marginal ")) else "<="
        outside = f"{value} {low} 0 or {value} > {1 + PROBABILITY_TOLERANCE!r}"
        sql.check(column, "is not a probability that is possible here", outside)
    facts = sql.facts({"items": sql.names_fact(item, "good")})
    items = sql.names(names["action"], item, facts["items"] or ())
    wanted["item"] = sql.code(item, items)
    parts = list[dict[str, NDArray[Any]]]()
    for rows in sql.batches(wanted):
        sql.bad.rows += int(np.count_nonzero(rows.bad))
        parts.append(rows.columns)
    sql.refuse()
    if not parts:
        raise InputError(f"{opened.name} has no rows: give a row for each position of a slate")
    read = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return _arranged(read, items, names, list(probabilities))


def _names(columns: list[str], given: Mapping[str, str]) -> dict[str, str]:
    for role in given:
        one_of("column role of slates", role, ROLES)
    found = {}
    for role in ROLES:
        if role in given:
            one_of(f"column for the {role}", given[role], columns)
            found[role] = given[role]
        elif role in columns:
            found[role] = role
        elif role not in OPTIONAL:
            raise InputError(
                f"no column is called {role!r}, and slates need one. There are: "
                f"{', '.join(columns)[:200]}. Say which column it is: columns={{{role!r}: NAME}}",
                parameter=role,
            )
    return found


def _arranged(
    read: dict[str, NDArray[Any]],
    items: list[str],
    names: Mapping[str, str],
    probabilities: list[str],
) -> dict[str, Any]:
    """Return the columns as arrays ``[n, K]``, a row for each slate."""
    slate = numbered(read["slate"].view(np.int64))
    place, positions = _places(slate, read["position"], names)
    shape = (int(slate.max()) + 1, positions)

    def arranged(values: NDArray[Any], empty: float) -> Any:
        table = np.full(shape, empty, dtype=values.dtype)
        table.ravel()[place] = values
        return table

    filled: dict[str, Floats] = {name: arranged(read[name], 1.0) for name in probabilities}
    cluster: Integers | None = None
    if "cluster" in read:
        cluster = np.empty(shape[0], dtype=np.int64)
        cluster[slate] = numbered(read["cluster"].view(np.int64))
    return {
        "items": tuple(items),
        "item": arranged(read["item"], EMPTY),
        "reward": arranged(read["reward"], 0.0),
        "propensity": filled["propensity"],
        "marginal": filled.get("marginal"),
        "given": _of_policies(filled, "given "),
        "given_marginal": _of_policies(filled, "marginal "),
        "cluster": cluster,
    }


def _places(
    slate: Integers, position: NDArray[Any], names: Mapping[str, str]
) -> tuple[Integers, int]:
    """Return the place of each row in a table of all slates, and how many positions it has."""
    position = (position - position.min()).astype(np.int64)
    positions = int(position.max()) + 1
    if positions > MOST_POSITIONS:
        raise InputError(
            f"the positions in {names['position']!r} are up to {positions} apart, and slates have "
            f"up to {MOST_POSITIONS} positions: name the column that holds the position"
        )
    place: Integers = slate * positions + position
    if len(np.unique(place)) < len(place):
        raise InputError(
            "two rows have the same slate and position, and each position of a slate has one row: "
            f"check the columns {names['slate']!r} and {names['position']!r}",
            parameter="position",
        )
    return place, positions


def _of_policies(filled: Mapping[str, Floats], start: str) -> dict[str, Floats]:
    return {
        name.removeprefix(start): values
        for name, values in filled.items()
        if name.startswith(start)
    }
