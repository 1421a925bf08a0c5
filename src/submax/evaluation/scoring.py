"""What a learned policy would do in each row of a file of any size."""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv

from submax.core.arrays import Floats
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.evaluation.cells import CheckedColumns
from submax.evaluation.columns import context_columns
from submax.evaluation.policies import action_names
from submax.evaluation.reading import ContextColumns, eligible_names
from submax.evaluation.sources import PLAIN, TextFormat, open_source
from submax.schema.actions import ChoiceIndices
from submax.schema.trained_policy import TrainedPolicy

ROLES = ("context", "id", "eligible")
"""Roles that a column of a file to be scored can have."""
PROBABILITY = "prob_"
"""Beginning of the columns of probabilities."""


def scores(
    learned: TrainedPolicy,
    source: Any,
    columns: Mapping[str, Any] | None = None,
    text: TextFormat = PLAIN,
) -> Iterator[Any]:
    """Yield a batch of pyarrow for each batch of rows: id, action, and ``prob_A`` of each action.

    ``source`` and ``columns`` are as in ``Log.read``; actions and rewards are not needed. Rows with
    an impossible value raise an error that names them. Memory does not grow with the rows.
    """
    given = dict(columns or {})
    for role in given:
        one_of("column role", role, ROLES)
    action_names(learned.schema, "scoring")
    opened = open_source(source, text)
    single = {
        role: given.get(role, role if role in opened.columns else None)
        for role in ("id", "eligible")
    }
    for role, name in single.items():
        if name:
            one_of(f"column for the {role}", name, opened.columns)
    fields = learned.schema.context.names
    if "context" not in given and not any(one.startswith("context_") for one in opened.columns):
        given["context"] = list(fields)
    found = {
        name: column
        for name, column in context_columns(opened.columns, given).items()
        if name in fields
    }
    sql = CheckedColumns(opened)
    reader = ContextColumns(sql, found, learned.schema.context)
    texts = {role: sql.text(name, nested=True) for role, name in single.items() if name}
    for rows in sql.batches({**reader.wanted, **texts}):
        sql.bad.rows += int(np.count_nonzero(rows.bad))
        if rows.bad.any():
            sql.refuse()
        context = learned.schema.context.encode_rows(reader.read(rows, ~rows.bad))
        yield _scored(learned, context, rows.columns.get("eligible"), rows.columns.get("id"))
    sql.refuse()


def write_scores(
    file: BinaryIO,
    learned: TrainedPolicy,
    source: Any,
    columns: Mapping[str, Any] | None = None,
    text: TextFormat = PLAIN,
) -> int:
    """Write the scores as CSV, and return the number of rows."""
    rows, writer = 0, None
    for batch in scores(learned, source, columns, text):
        writer = writer or csv.CSVWriter(file, batch.schema)
        writer.write(batch)
        rows += batch.num_rows
    if writer is None:
        raise InputError("the file has no rows to score: give a file with at least one row")
    writer.close()
    return rows


def _scored(learned: TrainedPolicy, context: Any, eligible: Any, ids: Any) -> Any:
    names = action_names(learned.schema, "scoring")
    probability: Floats = np.empty((len(context), len(names)))
    if eligible is None:
        probability[:] = learned.probabilities(context)
    else:
        for cell in dict.fromkeys(eligible):
            several = np.array([one == cell for one in eligible])
            probability[several] = learned.probabilities(context[several], _choices(cell, names))
    best = probability.argmax(axis=1)
    table: dict[str, Any] = {} if ids is None else {"id": ids}
    table["action"] = pa.array(names).take(pa.array(best))
    table |= {f"{PROBABILITY}{name}": probability[:, place] for place, name in enumerate(names)}
    return pa.RecordBatch.from_pydict(table)


def _choices(cell: str | None, names: list[str]) -> ChoiceIndices | None:
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
