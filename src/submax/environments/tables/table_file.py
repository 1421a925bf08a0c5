"""Tables read from files; what is wrong with them is said by column and row."""

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from submax.core.arrays import Floats
from submax.core.errors import InputError

READERS = {".csv": csv.read_csv, ".parquet": parquet.read_table}


def check_file(file: object) -> None:
    """Refuse what is not the name of a CSV or Parquet file that is there."""
    if not isinstance(file, str):
        raise InputError(f"file must be a text, not {file!r}")
    if Path(file).suffix.lower() not in READERS:
        raise InputError(f"file must end in .csv or .parquet, not {file!r}")
    if not Path(file).is_file():
        raise InputError(f"there is no file {file!r}")


def read_table(file: str) -> Any:
    """The table of a file."""
    try:
        table = READERS[Path(file).suffix.lower()](file)
        # Names that are no UTF-8 fail when they are first looked at.
        _ = table.column_names
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {file!r}: {error}") from error
    return table


def numbers(name: str, column: Any) -> Floats:
    """A column as finite numbers; rows are counted from 1, without the header."""
    if len(column) and not _is_numeric(column.type):
        rows = enumerate(column.to_pylist(), 1)
        _refuse(name, column, next((row for row, one in rows if not _is_number(one)), 1))
    values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    if not np.isfinite(values).all():
        _refuse(name, column, first_row(~np.isfinite(values)))
    return values


def first_row(wanted: Any) -> int:
    """The first row that is wanted, counted from 1."""
    return int(np.argmax(np.asarray(wanted))) + 1


def _refuse(name: str, column: Any, row: int) -> NoReturn:
    value = column[row - 1].as_py()
    raise InputError(f"column {name!r} must hold numbers, and row {row} holds {value!r}")


def _is_numeric(kind: Any) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _is_number(value: object) -> bool:
    try:
        return bool(np.isfinite(float(value)))  # type: ignore[arg-type]  # that is the question
    except (TypeError, ValueError):
        return False
