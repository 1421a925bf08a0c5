"""A table of numbers that is given in a dataclass, as a tuple of rows."""

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError

Rows = tuple[tuple[float, ...], ...]


def checked_rows(name: str, rows: object, count: int, width: int) -> Floats:
    """Return the rows as an array ``[count, width]``; refuse anything else."""
    try:
        table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.shape != (count, width) or not np.isfinite(table).all():
        raise InputError(
            f"{name} must be {count} rows of {width} finite numbers, one row for each arm, not "
            f"{rows!r:.80}{_advice(table)}",
            parameter=name,
        )
    return table


def _advice(table: Floats) -> str:
    """Return which sizes belong to a table that has rows of one length."""
    if table.ndim != 2 or not np.isfinite(table).all():
        return ""
    count, width = table.shape
    return f": give arms = {count} and dimension = {width} with this table"
