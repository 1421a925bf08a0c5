"""Which columns of a table hold numbers."""

from typing import Any

import numpy as np
import pyarrow as pa

from submax.evaluation.reading.cells import numbers

ODD = 0.1
"""Up to this share of values may be no numbers in a column of numbers."""
LOOKED_AT = 10_000
"""Rows of text by which that is found out."""
NUMERIC = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_null,
)


def numeric_columns(schema: Any) -> set[str]:
    """Those whose type says so."""
    return {field.name for field in schema if any(test(field.type) for test in NUMERIC)}


def mostly_numbers(batch: Any) -> set[str]:
    """Columns of text that are numbers but for a few values, which must be mistakes."""
    found = set()
    for name, column in zip(batch.schema.names, batch.columns, strict=True) if batch else ():
        if pa.types.is_string(column.type):
            read = numbers(column[:LOOKED_AT])
            present = np.count_nonzero(~read.missing)
            if present and read.wrong.sum() <= ODD * present:
                found.add(name)
    return found
