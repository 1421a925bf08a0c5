"""The values of a column, and which of them are none."""

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
SEPARATOR = "|"
"""Between eligible choices that are written as one text."""


class Numbers(NamedTuple):
    """Finite ``values [n]``; those that are ``missing`` or ``wrong`` are NaN."""

    values: Floats
    missing: Booleans
    wrong: Booleans


def numbers(column: Any) -> Numbers:
    """The numbers of a pyarrow array, which may hold them as text."""
    return _numbers(column, _as_number)


def times(column: Any) -> Numbers:
    """Moments as seconds; text as ISO 8601, without a zone in UTC."""
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
    """For each slot the names of a cell: lists of lists, one list, JSON, or ``A|B``."""
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
    """Moments, where all of the text can be read as such at once."""
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            # To fail is slow, and mostly the first value tells.
            pc.cast(column.drop_null()[:1], kind)
            return pc.cast(column, kind)
        except pa.ArrowInvalid:
            continue
    return column


def _numbers(column: Any, slowly: Callable[[Any], float]) -> Numbers:
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    try:
        cast = pc.cast(column, pa.float64(), safe=False)
        values = cast.to_numpy(zero_copy_only=False).astype(np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        values = np.array([slowly(value) for value in column.to_pylist()], dtype=np.float64)
    finite = np.isfinite(values)
    return Numbers(np.where(finite, values, np.nan), missing, ~finite & ~missing)


def _as_number(value: Any) -> float:
    try:
        text = str(value).strip().lower()
        # Python would read 1_000, which others take for a name.
        return TRUTH[text] if text in TRUTH else float(text.replace("_", "?"))
    except ValueError:
        return float("nan")


def _as_time(value: Any) -> float:
    # Numbers first, as where all of a column can be read at once: 20240101 is no date.
    number = _as_number(value)
    if not math.isnan(number):
        return number
    try:
        moment = datetime.fromisoformat(str(value).strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return number
