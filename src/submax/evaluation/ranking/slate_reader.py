"""Reads ranked lists from a table with a row for each position."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.problem import PROBABILITY_TOLERANCE
from submax.evaluation.ranking.slates import EMPTY
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.checked_batch import CheckedBatch
from submax.evaluation.reading.columns.vocabulary import MISSING, NO_NAME, UNKNOWN, Vocabulary
from submax.evaluation.reading.row_order import numbered
from submax.evaluation.reading.sources.opening import open_source

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
    used = list(dict.fromkeys([*names.values(), *probabilities.values()]))
    bad, items, parts, first = BadRows(), Vocabulary(), list[dict[str, NDArray[Any]]](), 1
    for batch in opened.batches(used, bad):
        checked = CheckedBatch(batch, bad, first, np.ones(batch.num_rows, dtype=bool))
        parts.append(_read(checked, names, probabilities, items))
        bad.rows += int(np.count_nonzero(checked.bad))
        first += batch.num_rows
    bad.refuse(opened.name, first - 1)
    if first == 1:
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


def _read(
    batch: CheckedBatch,
    names: Mapping[str, str],
    probabilities: Mapping[str, str],
    items: Vocabulary,
) -> dict[str, NDArray[Any]]:
    position = batch.required_numbers(names["position"])
    fraction = (position != np.round(position)) & np.isfinite(position)
    batch.note(names["position"], "is not a whole number", fraction)
    item = items.code(batch.column(names["action"]))
    batch.note(names["action"], "is missing: an item is needed", item == MISSING)
    batch.note(names["action"], NO_NAME, item == UNKNOWN)
    found: dict[str, NDArray[Any]] = {
        "slate": batch.identifiers(names["slate"]),
        "position": position,
        "item": item,
        "reward": batch.required_numbers(names["reward"]),
    }
    if "cluster" in names:
        found["cluster"] = batch.identifiers(names["cluster"])
    for name, column in probabilities.items():
        values = batch.required_numbers(column)
        low = values < 0 if name.startswith(("given", "marginal ")) else values <= 0
        outside = low | (values > 1 + PROBABILITY_TOLERANCE)
        batch.note(column, "is not a probability that is possible here", outside)
        found[name] = values
    return found


def _arranged(
    read: dict[str, NDArray[Any]],
    items: Vocabulary,
    names: Mapping[str, str],
    probabilities: list[str],
) -> dict[str, Any]:
    """Return the columns as arrays ``[n, K]``, a row for each slate."""
    slate = numbered(read["slate"])
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
        cluster[slate] = numbered(read["cluster"])
    return {
        "items": tuple(items.indices),
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
