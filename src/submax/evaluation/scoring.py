"""What a learned policy would do in each row of a file of any size."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from submax.core.arrays import Floats
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.evaluation.columns import CONTEXT, CheckedColumns, columns_of_role
from submax.evaluation.policies import action_names
from submax.evaluation.reading import ContextColumns, eligible_names
from submax.evaluation.sources import TextFormat, open_source
from submax.schema.trained_policy import TrainedPolicy

ROLES = ("context", "id", "user", "eligible")
"""Roles that a column of a file to be scored can have; those of id and user are kept."""


def scores(
    learned: TrainedPolicy,
    source: Any,
    columns: Mapping[str, Any],
    text: TextFormat,
) -> Iterator[Any]:
    """Yield a batch of pyarrow for each batch of rows: id, user, action, ``prob_A`` of each action.

    ``source`` and ``columns`` are as in ``Log.read``; actions and rewards are not needed. Rows with
    an impossible value raise an error that names them. Memory does not grow with the rows.
    """
    given = dict(columns)
    for role in given:
        one_of("column role", role, ROLES)
    opened = open_source(source, text)
    names, fields = action_names(learned.schema, "scoring"), learned.schema.context.names
    prefixed = {name: f"{CONTEXT}{name}" for name in fields if f"{CONTEXT}{name}" in opened.columns}
    context = columns_of_role(
        "context", opened.columns, given.pop("context", prefixed or list(fields))
    )
    sql = CheckedColumns(opened)
    found = {name: column for name, column in context.items() if name in fields}
    context_columns = ContextColumns(sql, found, learned.schema.context)
    kept = {role: given.get(role, role if role in opened.columns else None) for role in ROLES[1:]}
    for role, name in kept.items():
        if name:
            one_of(f"column for the {role}", name, opened.columns)
            sql.wanted[role] = sql.text(name, nested=True)
    sql.examine()
    sql.refuse("source")
    context_columns.finish()
    for rows, values in sql.batches():
        encoded = learned.schema.context.encode_rows(values["context"].astype(np.float32))
        cells = values.pop("eligible", np.full(len(rows), None))
        probability: Floats = np.empty((len(rows), len(names)))
        rows_of = defaultdict[str | None, list[int]](list)
        for row, cell in enumerate(cells):
            rows_of[cell].append(row)
        for cell, same in rows_of.items():
            probability[same] = learned.probabilities(encoded[same], _choices(cell, names))
        table: dict[str, Any] = {role: values[role] for role in ("id", "user") if role in values}
        table["action"] = pa.array(names).take(pa.array(probability.argmax(axis=1)))
        table |= {f"prob_{one}": probability[:, place] for place, one in enumerate(names)}
        yield pa.RecordBatch.from_pydict(table)


def _choices(cell: str | None, names: list[str]) -> tuple[tuple[int, ...]] | None:
    """Return the indices of the eligible actions of a cell; None if all are eligible."""
    if cell is None:
        return None
    found = eligible_names(cell)
    known = [names.index(one) for one in found[0] if one in names] if found else []
    if not known:
        raise InputError(
            f"the eligible actions are {cell!r}: name actions of the policy, such as "
            f"{'|'.join(names[:2])}",
            parameter="eligible",
        )
    return (tuple(sorted(known)),)
