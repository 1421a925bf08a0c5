"""Tables read from CSV and Parquet files; errors name the column and the row."""

from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError
from submax.core.running.extras import require_extra

ENDINGS = (".csv", ".parquet")
"""How the name of a file with a table may end."""


def check_file(file: object) -> None:
    """Refuse anything but the path of an existing CSV or Parquet file."""
    if not isinstance(file, str):
        raise InputError(
            f"file must be the path of a .csv or .parquet file, not {file!r}", parameter="file"
        )
    if Path(file).suffix.lower() not in ENDINGS:
        raise InputError(f"file must end in .csv or .parquet, not {file!r}", parameter="file")
    if not Path(file).is_file():
        raise InputError(
            f"there is no file {file!r}: check the path, which in an experiment file is relative "
            "to the folder of the experiment file",
            parameter="file",
        )


def read_table(file: str) -> Any:
    """The table of a file, as pyarrow reads it."""
    require_extra("logs", f"reading {file!r}", "pyarrow")
    import pyarrow as pa
    from pyarrow import csv, parquet

    read = csv.read_csv if Path(file).suffix.lower() == ".csv" else parquet.read_table
    try:
        table = read(file)
        # Column names that are not valid UTF-8 fail when they are first read.
        _ = table.column_names
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(
            f"{file!r} cannot be read as a {Path(file).suffix} file: {error}", parameter="file"
        ) from error
    return table


def numbers(name: str, column: Any) -> Floats:
    """A column as finite numbers. Errors count rows from 1, without the header."""
    import pyarrow as pa

    if len(column) and not _is_numeric(column.type):
        rows = enumerate(column.to_pylist(), 1)
        _refuse(name, column, next((row for row, one in rows if not _is_number(one)), 1))
    values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    if not np.isfinite(values).all():
        _refuse(name, column, first_row(~np.isfinite(values)))
    return values


def first_row(condition: Any) -> int:
    """The number of the first row for which the condition is true, counted from 1."""
    return int(np.argmax(np.asarray(condition))) + 1


def _refuse(name: str, column: Any, row: int) -> NoReturn:
    value = column[row - 1].as_py()
    raise InputError(
        f"column {name!r} must hold finite numbers, but row {row} holds {value!r}: replace the "
        "value or remove the row",
        parameter=name,
    )


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _is_number(value: object) -> bool:
    try:
        return bool(np.isfinite(float(value)))  # type: ignore[arg-type]  # that is the question
    except (TypeError, ValueError):
        return False
