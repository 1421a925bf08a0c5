"""Turns data frames and tables of columns into a pyarrow table."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from submax.core.errors import InputError

INDEX = "__index_level_"
"""Beginning of the name that pyarrow gives to the unnamed index of a pandas data frame."""
CONVERSION_ERRORS = (TypeError, ValueError, OverflowError, pa.ArrowException)
"""Errors of pyarrow if it cannot convert an object."""


def arrow_table(source: Any) -> tuple[Any, list[str]]:
    """Return the table, and the columns that became text because they hold several types."""
    try:
        # Polars and some other data frames have their own method.
        table = source.to_arrow() if hasattr(source, "to_arrow") else pa.table(source)
    except CONVERSION_ERRORS as error:
        table, as_text = _column_by_column(source, error)
    else:
        as_text = []
    kept = [place for place, name in enumerate(table.column_names) if not name.startswith(INDEX)]
    return table.select(kept), as_text


def _column_by_column(source: Any, error: Exception) -> tuple[Any, list[str]]:
    columns = _columns(source)
    if columns is None:
        raise InputError(
            f"a log cannot be read from a {type(source).__name__}: give a file, a data frame or a "
            f"table from names to columns ({error})"
        ) from error
    arrays, as_text = {}, []
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(values)
        except CONVERSION_ERRORS as refused:
            arrays[name] = _text(name, values, refused)
            as_text.append(name)
    try:
        return pa.table(arrays), as_text
    except CONVERSION_ERRORS as refused:
        raise InputError(
            f"the columns do not form a table: {refused}; give columns of the same length"
        ) from refused


def _columns(source: Any) -> dict[str, Any] | None:
    """Return the values of each column, None for missing values; None if there are no columns."""
    if isinstance(source, Mapping):
        return {str(name): values for name, values in source.items()}
    if not hasattr(source, "notna") or not source.columns.is_unique:
        return None
    return {
        str(name): source[name].astype(object).where(source[name].notna(), None)
        for name in source.columns
    }


def _text(name: str, values: Any, error: Exception) -> Any:
    if (
        isinstance(values, str)
        or not hasattr(values, "__iter__")
        or getattr(values, "ndim", 1) != 1
    ):
        raise InputError(
            f"column {name!r} does not hold one value for each row ({error}): give a list or an "
            "array of one dimension"
        ) from error
    return pa.array([None if value is None else str(value) for value in values], pa.string())
