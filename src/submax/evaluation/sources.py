"""Files and tables as one table of DuckDB, and where each of its rows is."""

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from glob import has_magic
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import duckdb
import msgspec
import numpy as np
import pyarrow as pa

from submax.core.decoding import known_type
from submax.core.errors import InputError, one_line
from submax.schema.schema import METADATA, Schema

BATCH_ROWS = 1 << 17
"""Rows of a batch: enough for fast columns, few enough for little memory."""
READ_ERRORS = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError, duckdb.Error)
"""Errors of a file that cannot be read or is damaged."""
CONVERSION_ERRORS = (TypeError, ValueError, OverflowError, pa.ArrowException)
"""Errors of pyarrow if it cannot convert an object."""
ENDINGS = (".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
"""Endings of the files of a folder that are read; other files are left alone."""
HIDDEN = (".", "_")
"""Files and folders with these first letters are not data: ``_SUCCESS``, ``.ipynb_checkpoints``."""
GZIP, NEWLINE = b"\x1f\x8b", b"\n"
"""The first bytes of every gzip file, and the end of a line."""
CHECKED_BYTES = 1 << 20
"""Bytes at the beginning of a file that must be text, before its header is read."""
SEPARATORS = (",", ";", "\t", "|")
"""Signs between the values of a CSV file; the one that divides its header into most columns is
taken."""
DECIMAL_COMMA = r"^(\s*[-+]?\d*),(\d+\s*)$"
"""A number with a decimal comma, as spreadsheets write it in files separated by semicolons."""
WIDE = {"action": "action_slot", "context": "context_x"}
"""Arrays that may have two dimensions, and the names of their columns, without a number."""
DAMAGED = {
    "INVALID ENCODING": "is not text in UTF-8: convert the file to UTF-8",
    "UNQUOTED VALUE": "has a quote that is never closed, or text after a closing quote: close the "
    "quote, or remove it",
}
"""Why rows that DuckDB refuses cannot be left out: they may hide all rows below."""


class TextFormat(NamedTuple):
    """The sign between the values of a CSV file, and the decimal sign of its numbers.

    If the separator is None, it is recognized. If the decimal sign is None, it is a comma in files
    separated by semicolons, otherwise a point.
    """

    separator: str | None = None
    decimal: str | None = None

    def check(self) -> None:
        """Refuse signs that cannot be told apart."""
        sign = self.separator
        if sign is not None and (len(sign) != 1 or sign in '"\n\r' or sign.isalnum()):
            raise InputError(
                f"the separator is {sign!r}: give a single character, such as ';' or a tab",
                parameter="separator",
            )
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal is {self.decimal!r}: give '.' or ','", parameter="decimal")


class Part(NamedTuple):
    """A file, or a table, as a ``table`` of DuckDB with the columns c0, c1 and so on.

    The export of a bandit contains its ``schema``. Columns are ``untyped`` if they are text only
    because their type is unknown. For a text file, ``lines`` yields the number of the record of
    each row, and the line at which it begins.
    """

    name: str
    columns: list[str]
    table: str
    schema: Schema | None = None
    untyped: Sequence[str] = ()
    lines: Callable[[], Iterable[tuple[int, int]]] = tuple


class Source:
    """A log that DuckDB reads, of one part or of several with the same columns.

    ``table`` has the columns c0, c1 and so on, and ``types`` are those of DuckDB.
    """

    def __init__(self, name: str, connection: Any, parts: Sequence[Part]) -> None:
        self.name, self.connection, self._parts = name, connection, parts
        first = parts[0]
        self.columns, self.schema, self.untyped = first.columns, first.schema, first.untyped
        tables = []
        for part in parts:
            if sorted(part.columns) != sorted(first.columns) or part.schema != first.schema:
                raise InputError(
                    f"{first.name} and {part.name} have different columns, or are exports of "
                    "bandits with different actions, contexts or rewards: read them one by one, "
                    "or choose files by a pattern such as 'logs/*.parquet'"
                )
            places = (part.columns.index(column) for column in first.columns)
            cells = ", ".join(f"c{place} as c{new}" for new, place in enumerate(places))
            tables.append(f"select {cells} from {part.table}")
        self.table = f"({' union all '.join(tables)})"
        described = self.rows(f"describe select * from {self.table}")
        self.types = {name: one[1] for name, one in zip(self.columns, described, strict=True)}

    def cell(self, column: str) -> str:
        """Return the name of a column in SQL."""
        return f"c{self.columns.index(column)}"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a short result."""
        with _readable(self.name):
            return cast(list[tuple[Any, ...]], self.connection.execute(query).fetchall())

    def batches(self, query: str) -> Iterator[Any]:
        """Yield the rows of a long result as batches of pyarrow, in the order of the log."""
        with _readable(self.name):
            yield from self.connection.sql(query).to_arrow_reader(BATCH_ROWS)

    @cached_property
    def rejected(self) -> dict[str, set[int]]:
        """By file, the numbers of the records that do not have as many values as the header."""
        found: dict[str, set[int]] = {}
        if not self.rows("select 1 from duckdb_tables() where table_name = 'reject_errors'"):
            return found
        for file, record, kind in self.rows(
            # DuckDB's line counts records: a quoted value of several lines does not add to it.
            "select distinct file_path, line, error_type from reject_errors "
            "join reject_scans using (scan_id, file_id) order by all"
        ):
            if kind in DAMAGED:
                raise InputError(f"line {self._line(file, record)} of {file!r} {DAMAGED[kind]}")
            found.setdefault(file, set()).add(record)
        return found

    def places(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return where rows are: the line of a text file, or the row, and which of several files.

        The ``numbers`` do not count rows that DuckDB left out; the answers do.
        """
        found, wanted, before = dict[int, str](), set(numbers), 0
        for part in self._parts:
            rows = max(wanted, default=0)
            if len(self._parts) > 1:
                ((rows,),) = self.rows(f"select count(*) from {part.table}")
            inside = {one - before: one for one in wanted if before < one <= before + rows}
            names = {row: f"row {row}" for row in inside}
            left_out = self.rejected.get(part.name, ())
            records = part.lines() if inside else ()
            lines = (line for record, line in records if record not in left_out)
            for row, line in enumerate(islice(lines, max(inside, default=0)), 1):
                if row in inside:
                    names[row] = f"line {line}"
            found |= {inside[row]: self._in_file(part.name, name) for row, name in names.items()}
            before += rows
        return found

    def first_rejected(self, file: str) -> str:
        """Return where the first record is that DuckDB left out of a file."""
        return self._in_file(file, f"line {self._line(file, min(self.rejected[file]))}")

    def _line(self, file: str, record: int) -> int:
        """Return the line at which a record of a CSV file begins."""
        (part,) = (part for part in self._parts if part.name == file)
        return next((line for number, line in part.lines() if number == record), record)

    def _in_file(self, file: str, name: str) -> str:
        return f"{name} of {file}" if len(self._parts) > 1 else name


def open_source(source: Any, text: TextFormat) -> Source:
    """Open a file, a folder or pattern of files, a data frame, or a table of columns.

    Files are Parquet, CSV or JSON lines; gzip may have compressed the last two. All files of a
    folder need the same columns, in any order.
    """
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    if isinstance(source, (str, Path)):
        text.check()
        parts = [_opened(path, text, connection) for path in files_of(source)]
        name = parts[0].name if len(parts) == 1 else f"{source} ({len(parts)} files)"
        return Source(name, connection, parts)
    table, untyped = arrow_table(source)
    columns, metadata = table.column_names, table.schema.metadata or {}
    connection.register("log", table.rename_columns([f"c{i}" for i in range(len(columns))]))
    schema = _schema_in(metadata.get(METADATA.encode()))
    return Source("the table", connection, [Part("the table", columns, "log", schema, untyped)])


def files_of(source: str | Path) -> Sequence[Path]:
    """Return the files of a folder or a pattern such as ``logs/*.parquet``, sorted by path.

    Any other path is returned as it is. An existing file whose name contains a bracket or a star is
    not a pattern.
    """
    path = Path(source)
    if path.is_dir():
        files = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file()
            and file.name.lower().endswith(ENDINGS)
            and not any(part.startswith(HIDDEN) for part in file.relative_to(path).parts)
        ]
        missing = f"the folder {str(path)!r} has no file of a log ({', '.join(ENDINGS)}): name "
        missing += "a folder with such files, or one file"
    elif path.exists() or not has_magic(str(source)):
        return [path]
    else:
        base = Path(path.anchor)
        files = sorted(file for file in base.glob(str(path.relative_to(base))) if file.is_file())
        missing = f"no file matches {str(source)!r}: check the pattern, and quote it for the shell"
    if not files:
        raise InputError(missing)
    return files


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Raise errors of reading as an ``InputError`` that names the file or table."""
    try:
        yield
    except READ_ERRORS as error:
        problem = one_line(error)
        if "strict_mode" in str(error):
            problem = "lines have different line ends, or a quote is never closed: write all "
            problem += "lines with the same line end, and close the quote"
        raise InputError(f"cannot read {name!r}: {problem}") from error


def _opened(path: Path, text: TextFormat, connection: Any) -> Part:
    """Open a file of any format, which is recognized by its first bytes."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}: check the path")
    with _readable(str(path)):
        with path.open("rb") as file:
            compressed = file.read(len(GZIP)) == GZIP
        with (gzip.open if compressed else open)(path, "rb") as file:
            start = file.read(CHECKED_BYTES)
        if not start.strip():
            raise InputError(
                f"{str(path)!r} is empty, and a log must have a header and rows: check the file"
            )
        if start.startswith(b"PAR1"):
            return _from_parquet(path, connection)
        if path.suffix.lower() == ".parquet":
            raise InputError(
                f"{str(path)!r} is not a Parquet file: if it is a CSV file, rename it to .csv"
            )
        if start.lstrip().startswith(b"{"):
            return _from_json(path, compressed, connection)
        return _from_csv(path, compressed, start, text)


def quoted(text: object) -> str:
    """Return a text as a value in SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def _from_parquet(path: Path, connection: Any) -> Part:
    file = quoted(path)
    described = connection.execute(f"describe select * from read_parquet({file})").fetchall()
    known = connection.execute(
        f"select value from parquet_kv_metadata({file}) where decode(key) = {quoted(METADATA)}"
    ).fetchone()
    places = ", ".join(f"c{place}" for place in range(len(described)))
    table = f"read_parquet({file}) parquet({places})"
    return Part(str(path), [one[0] for one in described], table, _schema_in(known and known[0]))


def _schema_in(text: bytes | None) -> Schema | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=known_type(Schema))
    except msgspec.DecodeError as error:
        raise InputError(
            f"the schema in the metadata of the log cannot be read: {error}; export the log again, "
            "or give it as a CSV file"
        ) from error


def _from_json(path: Path, compressed: bool, connection: Any) -> Part:
    """Open a file with one JSON object in each line; empty lines are ignored.

    The fields of a nested object are columns, too: ``{"context": {"age": 40}}`` has the column
    ``context_age``. The columns are those of the first rows. All values are read as text; a line
    that is no object is a row without values.
    """
    lines = (
        "(select case when json_type(json) = 'OBJECT' then json end as json from "
        f"read_ndjson_objects({quoted(path)}, ignore_errors=true, maximum_object_size=16777216, "
        f"compression='{'gzip' if compressed else 'uncompressed'}'))"
    )
    structure = f"select json_group_structure(json) from (from {lines} limit 20000)"
    fields = json.loads(connection.execute(structure).fetchone()[0] or "null")
    if not isinstance(fields, dict) or not fields:
        raise InputError(
            f"{str(path)!r} begins with a brace and has no line that is a JSON object: give a "
            "file with one object in each line, or a CSV or Parquet file"
        )
    cells: dict[str, str] = {}
    for name, kind in fields.items():
        inside = kind if isinstance(kind, dict) else {}
        columns = {f"{name}_{one}": [name, one] for one in inside} or {name: [name]}
        for column, keys in columns.items():
            pointer = "".join("/" + one.replace("~", "~0").replace("/", "~1") for one in keys)
            cells[column] = f"json_extract_string(json, {quoted(pointer)})"
    named = ", ".join(f"{cell} as c{place}" for place, cell in enumerate(cells.values()))
    table = f"(select {named} from {lines})"
    return Part(str(path), [*cells], table, None, [*cells], partial(_json_lines, path, compressed))


def _json_lines(path: Path, compressed: bool) -> Iterator[tuple[int, int]]:
    with (gzip.open if compressed else open)(path, "rb") as file:
        yield from ((line, line) for line, text in enumerate(file, 1) if text.strip())


def _from_csv(path: Path, compressed: bool, start: bytes, text: TextFormat) -> Part:
    """Open a CSV file with a header; empty lines are no rows, unless there is only one column.

    All columns are read as text, so a check can name what is no number.
    """
    # A block may end within a letter of several bytes.
    cut = start.rfind(NEWLINE) + 1 if len(start) == CHECKED_BYTES else len(start)
    try:
        head = start[:cut].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + start[: error.start].count(NEWLINE)
        raise InputError(f"line {line} of {str(path)!r} {DAMAGED['INVALID ENCODING']}") from error
    if "\0" in head:
        raise InputError(
            f"{str(path)!r} contains a zero byte: give a CSV file in UTF-8, or a Parquet file"
        )
    lines = head.splitlines(keepends=True)
    if not lines or start.lstrip().startswith(b"["):
        raise InputError(
            f"{str(path)!r} is a JSON list, or has no short first line: write one object per line"
        )
    skip = next((place for place, line in enumerate(lines) if line.strip()), 0)
    signs = SEPARATORS if text.separator is None else (text.separator,)
    headers = {sign: next(csv.reader(lines[skip:], delimiter=sign)) for sign in signs}
    separator, columns = max(headers.items(), key=lambda one: len(one[1]))
    kinds = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(columns)))
    table = (
        f"read_csv({quoted(path)}, auto_detect=false, columns={{{kinds}}}, header=true, "
        f"skip={skip}, delim={quoted(separator)}, quote='\"', escape='\"', "
        f"compression='{'gzip' if compressed else 'none'}', ignore_errors=true, "
        "store_rejects=true)"
    )
    if (text.decimal or ("," if separator == ";" else ".")) == ",":
        pointed = f"regexp_replace(columns(*), {quoted(DECIMAL_COMMA)}, '\\1.\\2')"
        table = f"(select {pointed} from {table})"
    lines_of = partial(_csv_lines, path, compressed, separator, skip + 1, len(columns))
    return Part(str(path), columns, table, None, columns, lines_of)


def _csv_lines(
    path: Path, compressed: bool, separator: str, header: int, columns: int
) -> Iterator[tuple[int, int]]:
    """Yield the number of the record of each row, and the line at which it begins.

    The header and empty lines are records, too. DuckDB counts records in the same way, and ignores
    spaces before a quote.
    """
    options: Any = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}
    with (gzip.open if compressed else open)(path, "rt", **options) as file:
        reader, line = csv.reader(file, delimiter=separator, skipinitialspace=True), 1
        try:
            for record, values in enumerate(reader, 1):
                if line > header and (values or columns == 1):
                    yield record, line
                line = reader.line_num + 1
        except csv.Error:
            # A value is longer than the module reads: rows below it keep the numbers of rows.
            return


def arrow_table(source: Any) -> tuple[Any, list[str]]:
    """Return a table of pyarrow, and the columns of several types, which became text."""
    untyped: list[str] = []
    try:
        if isinstance(source, list):
            source = pa.Table.from_struct_array(pa.array(source))
        if hasattr(source, "collect_schema") and hasattr(source, "collect"):
            # A lazy frame of polars.
            source = source.collect()
        if hasattr(source, "notna") and any(source.index.names):
            # A data frame of pandas whose index has a name: it is a column, too.
            source = source.reset_index()
        if isinstance(source, Mapping) or hasattr(source, "notna"):
            columns = [*_columns(source.items(), untyped)]
            table = pa.table([values for _, values in columns], [name for name, _ in columns])
        else:
            table = pa.table(source)
    except Exception as error:
        raise InputError(
            f"a log cannot be read from this {type(source).__name__} ({one_line(error)}): give a "
            "file, a data frame, a query that can be run, or a table from names to columns of the "
            "same length and of one dimension"
        ) from error
    return table, untyped


def _columns(columns: Iterable[tuple[Any, Any]], untyped: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the columns by name; an array with two dimensions has several.

    A column for which pyarrow finds no type becomes text and is ``untyped``.
    """
    for name, values in columns:
        dimensions = getattr(values, "ndim", 1)
        if name in WIDE and dimensions == 2:
            narrow = np.ascontiguousarray(np.asarray(values).T)
            yield from _columns(
                ((f"{WIDE[name]}{i}", one) for i, one in enumerate(narrow)), untyped
            )
            continue
        try:
            column = pa.array(values)
        except CONVERSION_ERRORS as error:
            if dimensions != 1:
                raise TypeError(f"column {name!r}: {error}") from error
            untyped.append(str(name))
            if hasattr(values, "notna"):
                values = values.astype(object).where(values.notna(), None)
            column = pa.array([None if one is None else str(one) for one in values], pa.string())
        yield str(name), column
