"""A table of pyarrow, from what holds columns."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from submax.core.errors import InputError

INDEX = "__index_level_"
"""So pandas calls the index of a frame that has no name."""
REFUSED = (TypeError, ValueError, OverflowError, pa.ArrowException)


def arrow_table(source: Any) -> tuple[Any, list[str]]:
    """The table, and the columns that were made text since they hold more than one type."""
    try:
        # Polars and others have a word of their own for this.
        table = source.to_arrow() if hasattr(source, "to_arrow") else pa.table(source)
    except REFUSED as error:
        table, as_text = _column_by_column(source, error)
    else:
        as_text = []
    kept = [place for place, name in enumerate(table.column_names) if not name.startswith(INDEX)]
    return table.select(kept), as_text


def _column_by_column(source: Any, error: Exception) -> tuple[Any, list[str]]:
    columns = _columns(source)
    if columns is None:
        raise InputError(
            "a log is a file, a data frame or a table of columns, and "
            f"{type(source).__name__} is none: {error}"
        ) from error
    arrays, as_text = {}, []
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(values)
        except REFUSED as refused:
            arrays[name] = _text(name, values, refused)
            as_text.append(name)
    try:
        return pa.table(arrays), as_text
    except REFUSED as refused:
        raise InputError(f"the columns make no table: {refused}") from refused


def _columns(source: Any) -> dict[str, Any] | None:
    """What each column holds; in a frame what is not there is None."""
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
            f"column {name!r} does not hold one value for each row: {error}"
        ) from error
    return pa.array([None if value is None else str(value) for value in values], pa.string())
