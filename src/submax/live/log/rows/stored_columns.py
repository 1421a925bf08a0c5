"""Training rows that are read back from a blob of a store."""

from typing import Any

from submax.core.errors import InputError
from submax.core.serialization import read_state
from submax.schema.rows import Columns


def stored_columns(data: bytes | None, expected: str) -> Columns | None:
    """Return the rows of a blob; None if it is missing, or their hash is not the expected one."""
    try:
        columns: Any = None if data is None else read_state(data)[0]
    except InputError:
        return None
    same = isinstance(columns, Columns) and columns.hash == expected
    return columns if same else None
