"""Files and tables as batches of rows, which DuckDB reads."""

import csv
import gzip
import json
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from glob import has_magic
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from submax.core.decoding import known_type
from submax.core.errors import InputError, one_line
from submax.evaluation.cells import BadRows, FileRows, numbers
from submax.schema.schema import METADATA, Schema

TABLE_BATCH_ROWS = 1 << 17
"""Rows of a batch: enough for fast columns, few enough for little memory."""
SAMPLED_ROWS = 10_000
"""Rows of a text column that are looked at to find out whether it holds numbers."""
MOST_NOT_NUMERIC = 0.1
"""A text column holds numbers, with some mistakes, if at most this share is not numeric."""
READ_ERRORS = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError, duckdb.Error)
"""Errors of a file that cannot be read or is damaged."""


class TextFormat(NamedTuple):
    """The sign between the values of a CSV file, and the one before the digits of a fraction."""

    separator: str = ","
    decimal: str = "."

    def check(self) -> "TextFormat":
        """Return the format; refuse signs that cannot be told apart."""
        if len(self.separator) != 1 or self.separator in '"\n\r' or self.separator.isalnum():
            raise InputError(
                f"the separator is {self.separator!r}; one sign such as ';' or a tab is allowed: "
                "give the sign between the values of a line",
                parameter="separator",
            )
        if self.decimal not in (".", ","):
            raise InputError(
                f"the decimal sign is {self.decimal!r}; '.' and ',' are allowed: give one of them",
                parameter="decimal",
            )
        return self


PLAIN = TextFormat()
"""The usual format: commas between values, and a point before a fraction."""


class Source(NamedTuple):
    """A log that can be read in batches.

    ``numeric`` are the columns that hold numbers, judged by the first rows. ``schema`` is the one
    that the export of a bandit carries in its metadata; None for other logs. ``lines`` yields the
    line at which each row begins, as an editor counts; None if rows are not lines of a file.
    """

    name: str
    columns: list[str]
    numeric: set[str]
    batches: Callable[[list[str], BadRows], Iterator[Any]]
    schema: Schema | None = None
    lines: Callable[[], Iterator[int]] | None = None


def open_source(source: Any, text: TextFormat = PLAIN) -> Source:
    """Open a file, a folder or pattern of files, a data frame, or a table of columns.

    Files are Parquet, CSV or JSON lines; gzip may have compressed the last two. All files of a
    folder need the same columns, in any order, and are opened one at a time.
    """
    if not isinstance(source, (str, Path)):
        return _from_table(source)
    files = files_of(source)
    first = open_file(files[0], text)
    name, numeric = first.name, set(first.numeric)
    if len(files) > 1:
        name = f"{source} ({len(files)} files)"
    for path in files[1:]:
        other = open_file(path, text)
        _check_same(first, other)
        # A column is a number only if it is one in every file.
        numeric &= other.numeric

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        before = 0
        for path in files:
            one = first if path == files[0] else open_file(path, text)
            named = str(path) if len(files) > 1 else ""
            bad.files.append(FileRows(before + 1, named, one.lines))
            rows, of_file = 0, BadRows()
            try:
                for batch in one.batches(columns, of_file):
                    rows += batch.num_rows
                    yield batch
            except READ_ERRORS as error:
                raise _unreadable(path, error) from error
            # Rows are counted over all files, as the reader counts them.
            bad.lines.extend(array("q", (before + line for line in of_file.lines)))
            before += rows + len(of_file.lines)

    return Source(name, first.columns, numeric, batches, first.schema)


def open_file(path: Path, text: TextFormat = PLAIN) -> Source:
    """Open a Parquet file, or a file of CSV or JSON lines, which gzip may have compressed."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}: check the path")
    try:
        with open_binary(path) as file:
            start = file.read(1 << 12)
        if not start.strip():
            raise InputError(
                f"{str(path)!r} is empty, and a log must have a header and rows: check the file"
            )
        if start[:4] == b"PAR1":
            return _from_parquet(path)
        if path.suffix.lower() == ".parquet":
            raise InputError(
                f"{str(path)!r} is called .parquet and is not a Parquet file: if it is a CSV file, "
                "give it the ending .csv"
            )
        return _from_json(path) if start.lstrip().startswith(b"{") else _from_csv(path, text)
    except READ_ERRORS as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"cannot read {str(path)!r}: {one_line(error)}")


def _check_same(first: Source, other: Source) -> None:
    """Refuse a file whose columns, or whose exported schema, differ from those of the first."""
    missing = sorted(set(first.columns) ^ set(other.columns))
    if missing:
        raise InputError(
            f"{first.name} and {other.name} have different columns ({', '.join(missing[:5])}), and "
            "all files of a log need the same: name only files of one kind, such as "
            "'logs/*.parquet'"
        )
    if first.schema != other.schema:
        raise InputError(
            f"{first.name} and {other.name} are exports of bandits with different actions, "
            "contexts or rewards: evaluate them one at a time"
        )


def _quoted(text: object, sign: str = "'") -> str:
    """Return a text for SQL: a value, or a name with the sign of names."""
    return f"{sign}{str(text).replace(sign, 2 * sign)}{sign}"


def _queried(connection: Any, query: str, columns: list[str]) -> Iterator[Any]:
    """Yield the batches of a query under other names of columns."""
    for batch in connection.sql(query).to_arrow_reader(TABLE_BATCH_ROWS):
        yield pa.RecordBatch.from_arrays(batch.columns[: len(columns)], names=columns)


def numeric_columns(schema: Any) -> set[str]:
    """Return the columns that have a numeric type."""
    kinds = pa.types
    tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
    return {field.name for field in schema if any(test(field.type) for test in tests)}


def mostly_numbers(batch: Any) -> set[str]:
    """Return the text columns whose values are numbers, except for a few mistakes."""
    found = set()
    for name, column in zip(batch.schema.names, batch.columns, strict=True) if batch else ():
        if pa.types.is_string(column.type):
            column = column[:SAMPLED_ROWS]
            read = numbers(column)
            # Text such as nan is no number of a log, but does not make a column one of names.
            wrong = column.filter(pa.array(read.wrong)).to_pylist()
            words = sum(one.lower() not in ("nan", "inf", "-inf") for one in wrong)
            present = np.count_nonzero(~read.missing)
            if present and words <= MOST_NOT_NUMERIC * present:
                found.add(name)
    return found


# Parquet and JSON lines --------------------------------------------------------------------------


def _from_parquet(path: Path) -> Source:
    with parquet.ParquetFile(path) as file:
        # What a writer adds at the end is in the metadata of the file, and not in the schema.
        schema, metadata = file.schema_arrow, file.metadata.metadata

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        wanted = ", ".join(_quoted(name, '"') for name in columns)
        query = f"select {wanted} from read_parquet({_quoted(path)})"
        yield from _queried(duckdb.connect(), query, columns)

    known = _schema_in_metadata(metadata)
    return Source(str(path), schema.names, numeric_columns(schema), batches, known)


def _schema_in_metadata(metadata: dict[bytes, bytes] | None) -> Schema | None:
    text = (metadata or {}).get(METADATA.encode())
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=known_type(Schema))
    except msgspec.DecodeError as error:
        raise InputError(
            f"the schema in the metadata of the log cannot be read: {error}; export the log again, "
            "or give it as a CSV file"
        ) from error


def _from_json(path: Path) -> Source:
    """Open a file with one JSON object in each line; empty lines are ignored.

    The fields of an object inside of a row are columns, too: ``{"context": {"age": 40}}`` has the
    column ``context_age``. The columns are those of the first rows. All values are read as text.
    """
    compression = "gzip" if is_compressed(path) else "uncompressed"
    lines = (
        f"read_ndjson_objects({_quoted(path)}, ignore_errors=true, compression='{compression}', "
        "maximum_object_size=16777216)"
    )
    rows = f"(select json, json_type(json) = 'OBJECT' as good from {lines})"
    structure = f"select json_group_structure(json) from (from {rows} where good limit 20000)"
    found = duckdb.connect().execute(structure).fetchone()
    fields = json.loads(found[0]) if found and found[0] else None
    if not isinstance(fields, dict) or not fields:
        raise InputError(
            f"{str(path)!r} begins with a brace and has no line that is a JSON object: give a "
            "file with one object in each line, or a CSV or Parquet file"
        )
    table: dict[str, Any] = {}
    places: dict[str, str] = {}
    for name, kind in fields.items():
        inner = list(kind) if isinstance(kind, dict) else []
        table[name] = dict.fromkeys(inner, "VARCHAR") if inner else "VARCHAR"
        of_row = f"row.{_quoted(name, chr(34))}"
        places |= {f"{name}_{one}": f"{of_row}.{_quoted(one, chr(34))}" for one in inner}
        places |= {} if inner else {name: of_row}
    read = f"(select good, from_json(json, {_quoted(json.dumps(table))}) as row from {rows})"

    def selected(columns: list[str], limit: str = "") -> Iterator[Any]:
        wanted = ", ".join([*(places[name] for name in columns), "coalesce(good, false)"])
        query = f"select {wanted} from {read}{limit}"
        yield from _queried(duckdb.connect(), query, [*columns, "good"])

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        before = 1
        for batch in selected(columns):
            good = batch.column("good")
            lines = np.flatnonzero(~np.asarray(good)) + before
            bad.lines.extend(array("q", lines.tolist()))
            before += batch.num_rows
            yield batch.select(columns).filter(good)

    first = next(selected([*places], f" limit {SAMPLED_ROWS}"), None)
    return Source(str(path), [*places], mostly_numbers(first), batches, None, lambda: _lines(path))


def _lines(path: Path) -> Iterator[int]:
    """Yield the numbers of the lines that are not empty."""
    with open_binary(path) as file:
        yield from (number for number, line in enumerate(file, start=1) if line.strip())


# CSV ---------------------------------------------------------------------------------------------

GZIP = b"\x1f\x8b"
"""The first bytes of every file that gzip has written."""
CHECKED_BYTES = 1 << 20
"""Bytes at the beginning of a file that must be text, before its header is read."""
NEWLINE = b"\n"
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators that are recognized in order to say how they are given."""
DECIMAL_COMMA = r"^(\s*[-+]?\d*),(\d+\s*)$"
"""A number with a decimal comma."""
REJECTED = """
select line_byte_position - 1 + cast(starts_with(csv_line, chr(10)) as integer), error_type
from reject_errors
"""
"""Where rows begin that DuckDB cannot read; after a line end of Windows it is a byte early."""


def is_compressed(path: Path) -> bool:
    """Return whether a file was compressed by gzip, whatever its name is."""
    with path.open("rb") as file:
        return file.read(len(GZIP)) == GZIP


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading; one that gzip has compressed is decompressed on the way."""
    return cast(BinaryIO, gzip.open(path, "rb")) if is_compressed(path) else path.open("rb")


def _from_csv(path: Path, text: TextFormat) -> Source:
    """Open a CSV file with a header. Rows are counted from 1 after it; empty lines are no rows.

    All columns are read as text, so that our own checks find and name what is no number.
    """
    columns, skip = _header(path, text.check())
    kinds = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(columns)))
    compression = "gzip" if is_compressed(path) else "none"
    file = (
        f"read_csv({_quoted(path)}, auto_detect=false, columns={{{kinds}}}, header=true, "
        f"skip={skip}, delim={_quoted(text.separator)}, quote='\"', escape='\"', "
        f"compression='{compression}', ignore_errors=true, store_rejects=true)"
    )

    def cell(name: str) -> str:
        place = f"c{columns.index(name)}"
        point = text.decimal == PLAIN.decimal
        return place if point else f"regexp_replace({place}, {_quoted(DECIMAL_COMMA)}, '\\1.\\2')"

    def selected(wanted: list[str], connection: Any, limit: str = "") -> Iterator[Any]:
        cells = ", ".join(map(cell, wanted)) or "c0"
        yield from _queried(connection, f"select {cells} from {file}{limit}", wanted)

    def batches(wanted: list[str], bad: BadRows) -> Iterator[Any]:
        connection = duckdb.connect()
        yield from selected(wanted, connection)
        rejected = dict(connection.execute(REJECTED).fetchall())
        if rejected:
            bad.lines.extend(array("q", _rejected_rows(path, text.separator, rejected)))

    def lines() -> Iterator[int]:
        return (row.line for row in islice(_csv_rows(path, text.separator), 1, None))

    first = next(selected(columns, duckdb.connect(), f" limit {SAMPLED_ROWS}"), None)
    return Source(str(path), columns, mostly_numbers(first), batches, None, lines)


def _header(path: Path, text: TextFormat) -> tuple[list[str], int]:
    """Return the names in the header, and the number of empty lines before it."""
    with open_binary(path) as file:
        start = file.read(CHECKED_BYTES)
    # A block may end within a letter of several bytes.
    cut = start.rfind(NEWLINE) + 1 if len(start) == CHECKED_BYTES else len(start)
    check_text(path, start[:cut], line=1)
    if not any(sign in start.lstrip() for sign in (NEWLINE, b"\r")):
        raise InputError(
            f"{str(path)!r} has only one line, so there are no rows: write a header, and a line "
            "for each decision"
        )
    lines = start[:cut].decode("utf-8-sig").splitlines(keepends=True)
    skip = next((place for place, line in enumerate(lines) if line.strip()), 0)
    columns: list[str] = next(csv.reader(lines[skip:], delimiter=text.separator))
    found = next((sign for sign in OTHER_SEPARATORS if sign in columns[0]), None)
    if len(columns) == 1 and found is not None:
        raise InputError(
            f"the values of {str(path)!r} are separated by {OTHER_SEPARATORS[found]}, and commas "
            f"are expected: give --separator {found!r} (separator={found!r}), and --decimal ',' if "
            "numbers have decimal commas",
            parameter="separator",
        )
    return columns, skip


def check_text(path: Path, data: bytes, line: int) -> None:
    """Refuse bytes that are not text in UTF-8; ``line`` is the line in which they begin."""
    zero = data.find(b"\0")
    if zero >= 0:
        raise InputError(
            f"{str(path)!r} is not text, since line {line + data[:zero].count(NEWLINE)} contains a "
            "zero byte: give a CSV file in UTF-8, or a Parquet file"
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{str(path)!r} is not text in UTF-8, since line "
            f"{line + data[: error.start].count(NEWLINE)} contains the byte "
            f"0x{data[error.start]:02x}: convert the file to UTF-8"
        ) from error


class CsvRow(NamedTuple):
    """The line at which a row begins, and the line and byte at which the next one does."""

    line: int
    next_line: int
    next_byte: int


def _csv_rows(path: Path, separator: str) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file, the header first; empty lines are no rows."""
    place, begin = 0, 1
    with open_binary(path) as file:

        def lines() -> Iterator[str]:
            nonlocal place
            for line in file:
                place += len(line)
                yield line.decode(errors="replace").replace("\r\n", "\n")

        reader = csv.reader(lines(), delimiter=separator)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield CsvRow(begin, reader.line_num + 1, place)
            begin = reader.line_num + 1


def _rejected_rows(path: Path, separator: str, rejected: Mapping[int, str]) -> list[int]:
    """Return the numbers of the rows that DuckDB cannot read, of which the bytes are given.

    Refuse a file whose bytes are not text, and one with a quote that is never closed.
    """
    if "INVALID ENCODING" in rejected.values():
        with open_binary(path) as file:
            for line, data in enumerate(file, start=1):
                check_text(path, data, line)
    found, waiting = list[int](), sorted(rejected, reverse=True)
    number, last = 0, CsvRow(1, 1, 0)
    try:
        for number, last in enumerate(_csv_rows(path, separator)):
            while waiting and waiting[-1] < last.next_byte:
                waiting.pop()
                found.append(max(number, 1))
        is_open = bool(found) and found[-1] == number and last.next_line - last.line > 1
        line = last.line
    except csv.Error:
        # The value is longer than any that Python reads.
        is_open, line = True, last.next_line
    if is_open:
        raise InputError(
            f"{str(path)!r} has a quote in the row that begins in line {line} that is never "
            "closed, so the rest of the file would be one value: close the quote, or remove it"
        )
    return found + [max(number, 1)] * len(waiting)


# Data frames and other tables --------------------------------------------------------------------

INDEX = "__index_level_"
"""Beginning of the name that pyarrow gives to the unnamed index of a pandas data frame."""
CONVERSION_ERRORS = (TypeError, ValueError, OverflowError, pa.ArrowException)
"""Errors of pyarrow if it cannot convert an object."""


def _from_table(source: Any) -> Source:
    """Open a data frame, a query that has not been run, or what pyarrow turns into a table."""
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):
        # A lazy frame of polars.
        return _from_query(source.head, source.select, lambda query: query.collect())
    if hasattr(source, "to_arrow_table") and hasattr(source, "project"):
        # A relation of DuckDB.
        def project(columns: list[str]) -> Any:
            return source.project(", ".join(_quoted(name, '"') for name in columns))

        return _from_query(source.limit, project, lambda query: query.to_arrow_table())
    if isinstance(getattr(source, "schema", None), pa.Schema) and not hasattr(source, "columns"):
        return _from_batches(source)
    table, as_text = arrow_table(source)
    first = table.select(as_text).to_batches(TABLE_BATCH_ROWS)[:1]
    numeric = numeric_columns(table.schema) | mostly_numbers(first[0] if first else None)

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from table.select(columns).to_batches(TABLE_BATCH_ROWS)

    known = _schema_in_metadata(table.schema.metadata)
    return Source("the table", table.column_names, numeric, batches, known)


def _from_batches(source: Any) -> Source:
    """Open what yields Arrow tables or batches and has their ``schema``."""

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        for table in source:
            for batch in pa.table(table).to_batches(TABLE_BATCH_ROWS):
                yield batch.select(columns)

    schema = source.schema
    known = _schema_in_metadata(schema.metadata)
    return Source("the log", schema.names, numeric_columns(schema), batches, known)


def _from_query(
    head: Callable[[int], Any], select: Callable[[list[str]], Any], run: Callable[[Any], Any]
) -> Source:
    """Open a query: it is run for its first rows now, and later for the columns of the log."""

    def computed(query: Any) -> Any:
        try:
            return arrow_table(run(query))[0]
        except Exception as error:
            raise InputError(
                f"the query of the log cannot be run ({one_line(error)}); one that can be is "
                "allowed: run it by itself, and give its result"
            ) from error

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from computed(select(columns)).to_batches(TABLE_BATCH_ROWS)

    first = computed(head(TABLE_BATCH_ROWS))
    return Source("the query", first.column_names, numeric_columns(first.schema), batches)


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
    if isinstance(source, Mapping):
        columns = {str(name): values for name, values in source.items()}
    elif hasattr(source, "notna") and source.columns.is_unique:
        columns = {
            str(name): source[name].astype(object).where(source[name].notna(), None)
            for name in source.columns
        }
    else:
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


def _text(name: str, values: Any, error: Exception) -> Any:
    single = isinstance(values, str) or not hasattr(values, "__iter__")
    if single or getattr(values, "ndim", 1) != 1:
        raise InputError(
            f"column {name!r} does not hold one value for each row ({error}): give a list or an "
            "array of one dimension"
        ) from error
    return pa.array([None if value is None else str(value) for value in values], pa.string())


# Folders and patterns ----------------------------------------------------------------------------

ENDINGS = (".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
"""Endings of the files of a folder that are read; other files are left alone."""
HIDDEN = (".", "_")
"""Files and folders that begin so are not data: ``_SUCCESS``, ``.ipynb_checkpoints``."""


def files_of(source: str | Path) -> Sequence[Path]:
    """Return the files of a folder or a pattern such as ``logs/*.parquet``, sorted by their path.

    Any other path is that of one file, which may not exist. A file whose name contains a bracket or
    a star is a file, not a pattern.
    """
    path = Path(source)
    if not path.is_dir() and (path.exists() or not has_magic(str(source))):
        return [path]
    if not path.is_dir():
        base = Path(path.anchor)
        files = sorted(one for one in base.glob(str(path.relative_to(base))) if one.is_file())
        if not files:
            raise InputError(
                f"no file matches {str(source)!r}: check the pattern, and put it into quotes so "
                "that the shell does not replace it"
            )
        return files
    files = [
        one
        for one in sorted(path.rglob("*"))
        if one.is_file()
        and one.name.lower().endswith(ENDINGS)
        and not any(part.startswith(HIDDEN) for part in one.relative_to(path).parts)
    ]
    if not files:
        raise InputError(
            f"the folder {str(path)!r} has no file of a log: a log is Parquet, CSV or JSON lines "
            f"({', '.join(ENDINGS)}); name a folder with such files, or one file"
        )
    return files
