"""What a learned policy would do in each row of a file of any size."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from submax.core.arrays import Floats
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.summary import listed
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
    progress: Callable[[str, int, int], None],
) -> Iterator[Any]:
    """Yield a batch of pyarrow for each batch of rows: id, user, action, ``prob_A`` of each action.

    ``source`` and ``columns`` are as in ``Log.read``; actions and rewards are not needed. Rows with
    an impossible value raise an error that names them. Memory does not grow with the rows.
    """
    opened = open_source(source, text)
    names, fields = action_names(learned.schema, "scoring"), learned.schema.context.names
    usual = {name: of for name in fields for of in (name, CONTEXT + name) if of in opened.columns}
    wanted = {**{one: one for one in ROLES if one in opened.columns}, "context": usual, **columns}
    for role in wanted:
        one_of("column role", role, ROLES)
    context = columns_of_role("context", opened.columns, wanted.pop("context"))
    sql = CheckedColumns(opened)
    found = {name: column for name, column in context.items() if name in fields}
    context_columns = ContextColumns(sql, found, learned.schema.context)
    for role, name in wanted.items():
        for column in columns_of_role(role, opened.columns, name).values():
            sql.wanted[role] = sql.text(column, nested=True)
    sql.examine()
    sql.refuse("source")
    context_columns.finish()
    for rows, values in sql.batches():
        progress("row", int(rows[0]) - 1, sql.rows)
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
    found = (eligible_names(cell) or [[]])[0]
    if not found or not set(found) <= set(names):
        raise InputError(
            f"the eligible actions are {cell!r}: name only actions of the policy, which are "
            f"{listed(names)}, separated by |",
            parameter="eligible",
        )
    return (tuple(sorted({names.index(one) for one in found})),)
