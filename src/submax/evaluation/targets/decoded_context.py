"""The context of rows as columns with the values that they have in the log."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.schema.context_schema import Category
from submax.schema.schema import Schema


def decoded_context(schema: Schema, context: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Return a column for each field: numbers, and the names of categories."""
    columns: dict[str, NDArray[Any]] = {}
    first = 0
    for name, field in zip(schema.context.names, schema.context.fields, strict=True):
        if isinstance(field, Category):
            width = len(field.values)
            code = context[:, first : first + width].argmax(axis=1)
            columns[name] = np.array(field.values, dtype=object)[code]
        else:
            width = 1
            columns[name] = context[:, first].astype(np.float64)
        first += width
    return columns
