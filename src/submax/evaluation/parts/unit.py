"""Units of work: consecutive row groups of a Parquet file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from submax.core.errors import InputError
from submax.evaluation.logs.log import Log
from submax.evaluation.reading.columns.column_names import find_columns
from submax.evaluation.reading.no_rows import NoRowsError
from submax.evaluation.reading.sources.several_files import files_of
from submax.evaluation.reading.sources.source import READ_ERRORS

UNIT_ROWS = 1 << 20
"""Row groups of a file form a unit of about this many rows: one task of a process."""
PART_ROWS = 1 << 17
"""Rows that are in memory together. It does not change any result beyond rounding."""


class Unit(NamedTuple):
    """Consecutive ``groups`` of rows of the file at ``path``, which has ``rows`` rows in them."""

    number: int
    path: str
    groups: tuple[int, ...]
    rows: int

    def logs(self, reading: Mapping[str, Any], columns: list[str]) -> Iterator[tuple[Log, Any]]:
        """Yield the rows in parts, each as a log and as it is in the file.

        ``reading`` are options of ``Log.read``. A part without a row that can be used is left
        out.
        """
        file = parquet.ParquetFile(self.path, pre_buffer=False)
        try:
            for batch in file.iter_batches(PART_ROWS, row_groups=self.groups, columns=columns):
                try:
                    yield Log.read(pa.Table.from_batches([batch]), **reading), batch
                except NoRowsError:
                    continue
                except InputError as error:
                    raise InputError(f"{self.path}: {error}") from error
        except READ_ERRORS as error:
            raise InputError(f"cannot read {self.path!r}: {error}") from error


def units_of(source: str | Path, columns: Mapping[str, Any]) -> tuple[list[Unit], list[str]]:
    """Return the units of Parquet files, and the columns that have to be read.

    ``source`` is a file, a folder or a pattern; ``columns`` maps roles to columns.
    """
    found: list[Unit] = []
    used: list[str] | None = None
    for path in files_of(source) or [Path(source)]:
        file = _opened(path)
        mine = find_columns(file.schema_arrow.names, columns).used
        if used is not None and set(mine) != set(used):
            raise InputError(
                f"{str(path)!r} has other columns than the files before; the same columns are "
                "allowed: name only files of one kind, such as 'logs/*.parquet'"
            )
        used = mine
        found += _units(str(path), file.metadata, len(found))
    return found, used or []


def _opened(path: Path) -> Any:
    """Return a Parquet file; refuse a file of another kind, one that is damaged, and none."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}: check the path")
    with path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if not is_parquet:
        raise InputError(
            f"{str(path)!r} is not a Parquet file, and only Parquet files can be read in parts: "
            "leave --read parts out (in Python: Log.read), or convert the log to Parquet, for "
            "example pandas.read_csv(...).to_parquet(...)",
            code="not-parquet",
        )
    try:
        return parquet.ParquetFile(path, pre_buffer=False)
    except READ_ERRORS as error:
        raise InputError(
            f"{str(path)!r} is a damaged Parquet file ({error}), and a whole one is needed: write "
            "the file again"
        ) from error


def _units(path: str, metadata: Any, first: int) -> list[Unit]:
    found: list[Unit] = []
    groups: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= UNIT_ROWS or group == metadata.num_row_groups - 1:
            found.append(Unit(first + len(found), path, tuple(groups), rows))
            groups, rows = [], 0
    return found
