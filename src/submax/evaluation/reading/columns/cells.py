"""Converts the cells of a column to numbers, times or lists of names."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from submax.core.arrays import Booleans, Floats

TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
"""Words that are read as numbers; upper and lower case make no difference."""
SEPARATOR = "|"
"""Separates the names of eligible choices in a cell of text."""


class Numbers(NamedTuple):
    """Finite ``values [n]``, NaN where a cell is ``missing`` or is ``wrong`` (not a number)."""

    values: Floats
    missing: Booleans
    wrong: Booleans


def numbers(column: Any) -> Numbers:
    """Return the numbers of a pyarrow array, which may hold them as text."""
    return _numbers(column, _as_number)


def times(column: Any) -> Numbers:
    """Return times in seconds since 1970; text is read as ISO 8601, in UTC if it has no zone."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = _parsed(column)
    if pa.types.is_timestamp(column.type):
        # Microseconds since 1970 fit into a double until long after the year 2200.
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        found = _numbers(column, _as_number)
        return found._replace(values=found.values / 1e6)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s")).cast(pa.int64())
    return _numbers(column, _as_time)


def eligible_names(value: Any) -> list[list[Any]] | None:
    """Return the names of eligible choices in a cell, for each slot; None if it has none.

    A cell is a list of lists, a list (one slot), either of them as JSON, or text such as ``A|B``.
    """
    if isinstance(value, str):
        if not value.startswith("["):
            return [value.split(SEPARATOR)]
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(one, list) for one in value):
        return value
    return [value]


def _parsed(column: Any) -> Any:
    """Return text as timestamps if pyarrow can convert the whole column, otherwise unchanged."""
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            # A failing conversion of the whole column is slow, so try the first value before.
            pc.cast(column.drop_null()[:1], kind)
            return pc.cast(column, kind)
        except pa.ArrowInvalid:
            continue
    return column


def _numbers(column: Any, convert_cell: Callable[[Any], float]) -> Numbers:
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    try:
        cast = pc.cast(column, pa.float64(), safe=False)
        values = cast.to_numpy(zero_copy_only=False).astype(np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        values = np.array([convert_cell(value) for value in column.to_pylist()], dtype=np.float64)
    finite = np.isfinite(values)
    return Numbers(np.where(finite, values, np.nan), missing, ~finite & ~missing)


def _as_number(value: Any) -> float:
    try:
        text = str(value).strip().lower()
        # Python would read 1_000 as a number; in data it is a name.
        return TRUTH[text] if text in TRUTH else float(text.replace("_", "?"))
    except ValueError:
        return float("nan")


def _as_time(value: Any) -> float:
    # Try numbers first, as for a column of numbers: 20240101 is a number, not a date.
    number = _as_number(value)
    if not math.isnan(number):
        return number
    try:
        time = datetime.fromisoformat(str(value).strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return number
