"""What a learned policy would do in each row of a file of any size."""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv

from submax.core.arrays import Floats
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.evaluation.columns import CheckedColumns, context_columns
from submax.evaluation.policies import action_names
from submax.evaluation.reading import ContextColumns, eligible_names
from submax.evaluation.sources import PLAIN, TextFormat, open_source
from submax.schema.trained_policy import TrainedPolicy

ROLES = ("context", "id", "eligible")
"""Roles that a column of a file to be scored can have."""


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
    names, opened = action_names(learned.schema, "scoring"), open_source(source, text)
    fields = learned.schema.context.names
    if "context" not in given and not any(one.startswith("context_") for one in opened.columns):
        given["context"] = list(fields)
    found = context_columns(opened.columns, given)
    found = {name: column for name, column in found.items() if name in fields}
    sql = CheckedColumns(opened)
    reader = ContextColumns(sql, found, learned.schema.context)
    wanted = {**reader.wanted}
    for role in ("id", "eligible"):
        name = given.get(role, role if role in opened.columns else None)
        if name:
            one_of(f"column for the {role}", name, opened.columns)
            wanted[role] = sql.text(name, nested=True)
    for rows in sql.batches(wanted):
        if not rows.bad.any():
            context = learned.schema.context.encode_rows(reader.read(rows))
            cells = rows.columns.get("eligible", np.full(len(rows.bad), None))
            probability: Floats = np.empty((len(rows.bad), len(names)))
            for cell in dict.fromkeys(cells):
                same = np.array([one == cell for one in cells])
                probability[same] = learned.probabilities(context[same], _choices(cell, names))
            table = {"id": rows.columns["id"]} if "id" in rows.columns else {}
            table["action"] = pa.array(names).take(pa.array(probability.argmax(axis=1)))
            table |= {f"prob_{one}": probability[:, place] for place, one in enumerate(names)}
            yield pa.RecordBatch.from_pydict(table)
    sql.refuse("source")


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
