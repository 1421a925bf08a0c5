"""Finds out which columns of a table hold numbers."""

from typing import Any

import numpy as np
import pyarrow as pa

from submax.evaluation.reading.columns.cells import numbers

MOST_NOT_NUMERIC = 0.1
"""A text column holds numbers, with some mistakes, if at most this share is not numeric."""
SAMPLED_ROWS = 10_000
"""Rows of a text column that are looked at to find this out."""
NUMERIC_TYPES = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_null,
)


def numeric_columns(schema: Any) -> set[str]:
    """Return the columns that have a numeric type."""
    return {field.name for field in schema if any(test(field.type) for test in NUMERIC_TYPES)}


def mostly_numbers(batch: Any) -> set[str]:
    """Return the text columns whose values are numbers, except for a few mistakes."""
    found = set()
    for name, column in zip(batch.schema.names, batch.columns, strict=True) if batch else ():
        if pa.types.is_string(column.type):
            read = numbers(column[:SAMPLED_ROWS])
            present = np.count_nonzero(~read.missing)
            if present and read.wrong.sum() <= MOST_NOT_NUMERIC * present:
                found.add(name)
    return found
