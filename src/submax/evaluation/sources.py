"""Files and tables as batches of rows."""

import csv
import gzip
import re
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from glob import has_magic
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import duckdb
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from submax.core.decoding import known_type
from submax.core.errors import InputError, one_line
from submax.evaluation.cells import BadRows, numbers
from submax.schema.schema import METADATA, Schema

GZIP = b"\x1f\x8b"
"""The first bytes of every file that gzip has written."""


def is_compressed(path: Path) -> bool:
    """Return whether a file was compressed by gzip, whatever its name is."""
    with path.open("rb") as file:
        return file.read(len(GZIP)) == GZIP


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading; one that gzip has compressed is decompressed on the way."""
    return cast(BinaryIO, gzip.open(path, "rb")) if is_compressed(path) else path.open("rb")


MOST_NOT_NUMERIC = 0.1
"""A text column holds numbers, with some mistakes, if at most this share is not numeric."""
NO_NUMBERS = ("nan", "inf", "-inf")
"""Words for numbers that are not finite."""
SAMPLED_ROWS = 10_000
"""Rows of a text column that are looked at to find this out."""
NUMERIC_TYPES = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_null,
)


def numeric_columns(schema: Any) -> set[str]:
    """Return the columns that have a numeric type."""
    return {field.name for field in schema if any(test(field.type) for test in NUMERIC_TYPES)}


def mostly_numbers(batch: Any) -> set[str]:
    """Return the text columns whose values are numbers, except for a few mistakes."""
    found = set()
    for name, column in zip(batch.schema.names, batch.columns, strict=True) if batch else ():
        if pa.types.is_string(column.type):
            column = column[:SAMPLED_ROWS]
            read = numbers(column)
            present = np.count_nonzero(~read.missing)
            # Text such as nan is no number of a log, but does not make a column one of names.
            wrong = column.filter(pa.array(read.wrong)).to_pylist()
            words = sum(one.lower() not in NO_NUMBERS for one in wrong)
            if present and words <= MOST_NOT_NUMERIC * present:
                found.add(name)
    return found


CHECKED_BYTES = 1 << 20
"""Bytes at the beginning of a file that must be text, before its header is read."""
QUOTED = re.compile(rb'(?:[^"]|"")*+')
"""The content of a quoted value, in which a doubled quote stands for one quote."""


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
DECIMAL_COMMA = r"^(\s*[-+]?\d*),(\d+\s*)$"
"""A number with a decimal comma."""


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


def _quote_after(line: bytes, number: int, opened: int | None, separator: bytes) -> int | None:
    """Return the line in which the quote was opened that is still open after this line.

    ``opened`` is the same before this line. A quote opens only at the beginning of a value.
    """
    place = 0
    while place < len(line):
        if opened is None and line[place : place + 1] == b'"':
            opened = number
            place += 1
        if opened is not None:
            inside = QUOTED.match(line, place)
            place = inside.end() if inside else place
            if place == len(line):
                break
            opened = None
        end = line.find(separator, place)
        place = end + len(separator) if end >= 0 else len(line)
    return opened


FIRST_LINE = 2
"""The line of the first row, as an editor counts: the header is line 1."""
NEWLINE = b"\n"
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators that are recognized in order to say how they are given."""
REJECTED = """
select line_byte_position + cast(starts_with(csv_line, chr(10)) as integer), error_type
from reject_errors
"""
"""Where rows begin that DuckDB cannot read; after a line end of Windows it is a byte early."""
SWALLOWED = ("UNQUOTED VALUE", "LINE SIZE OVER MAXIMUM")
"""Errors of DuckDB in a value that has a quote in the wrong place."""


class CsvSource:
    """A CSV file with a header, which DuckDB reads with all cores.

    ``columns`` are the names in the header, and ``numeric`` those of the columns that hold numbers,
    judged by the first rows. Rows are counted from 1 after the header; empty lines are not rows.
    """

    def __init__(self, path: Path, text: TextFormat = PLAIN) -> None:
        self._path, self._text = path, text.check()
        with open_binary(path) as file:
            start = file.read(CHECKED_BYTES)
        # A block may end within a letter of several bytes.
        cut = start.rfind(NEWLINE) + 1 if len(start) == CHECKED_BYTES else len(start)
        check_text(path, start[:cut], line=1)
        if not any(sign in start.lstrip() for sign in (NEWLINE, b"\r")):
            raise InputError(
                f"{str(path)!r} has only one line, so there are no rows: write a header, and a "
                "line for each decision"
            )
        lines = start[:cut].decode("utf-8-sig").splitlines(keepends=True)
        self._skip = next((place for place, line in enumerate(lines) if line.strip()), 0)
        header = csv.reader(lines[self._skip :], delimiter=text.separator)
        self.columns: list[str] = next(header)
        self._check_separator()
        first = next(self._batches(self.columns, duckdb.connect(), SAMPLED_ROWS), None)
        self.numeric = mostly_numbers(first)

    def batches(self, columns: list[str], bad: BadRows) -> Iterator[Any]:
        """Yield all rows; lines with too few or too many values are added to ``bad.lines``."""
        connection = duckdb.connect()
        yield from self._batches(columns, connection)
        found = connection.execute(REJECTED)
        rejected = dict(found.fetchall())
        if any(kind in SWALLOWED for kind in rejected.values()):
            _refuse_open_quote(self._path, self._text.separator.encode())
        for place, kind in rejected.items():
            if kind == "INVALID ENCODING":
                self._refuse_encoding(place - 1)
        places = {place - 1 for place in rejected}
        if places:
            bad.lines.extend(array("q", self._rows_at(places)[0]))
        # Rows that cannot be used are looked for in the file only if there are any.
        bad.find_first_line = lambda: FIRST_LINE if self._rows_at(places)[1] else None

    def _batches(self, columns: list[str], connection: Any, most: int | None = None) -> Any:
        # All columns are read as text, so that our own checks find and name what is no number.
        kinds = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(self.columns)))
        wanted = ", ".join(f"c{self.columns.index(name)}" for name in columns) or "c0"
        path, separator = (
            one.replace("'", "''") for one in (str(self._path), self._text.separator)
        )
        compression = "gzip" if is_compressed(self._path) else "none"
        limit = "" if most is None else f" limit {most}"
        query = (
            f"select {wanted} from read_csv('{path}', auto_detect=false, columns={{{kinds}}}, "
            f"header=true, skip={self._skip}, delim='{separator}', quote='\"', escape='\"', "
            f"compression='{compression}', ignore_errors=true, store_rejects=true){limit}"
        )
        try:
            for batch in connection.sql(query).to_arrow_reader(TABLE_BATCH_ROWS):
                arrays = [self._with_points(one) for one in batch.columns]
                yield pa.RecordBatch.from_arrays(arrays[: len(columns)], names=columns)
        except duckdb.Error as error:
            raise InputError(f"cannot read {str(self._path)!r}: {one_line(error)}") from error

    def _with_points(self, column: Any) -> Any:
        """Return a column whose numbers have decimal points, if the file has decimal commas."""
        if self._text.decimal == PLAIN.decimal:
            return column
        return pc.replace_substring_regex(column, DECIMAL_COMMA, r"\1.\2")

    def _rows_at(self, places: set[int]) -> tuple[list[int], bool]:
        """Return the numbers of the rows at some bytes of the file.

        Also whether each line of the file is a row, but for the header.
        """
        found, row, place, opened, plain = list[int](), 0, 0, None, True
        waiting = deque(sorted(places))
        with open_binary(self._path) as file:
            for number, line in enumerate(file, start=1):
                begins = opened is None and bool(line.strip())
                row, plain = row + begins, plain and begins
                while waiting and waiting[0] < place + len(line):
                    found.append(max(row - 1, 1))
                    waiting.popleft()
                opened = _quote_after(line, number, opened, self._text.separator.encode())
                place += len(line)
        return found, plain

    def _refuse_encoding(self, place: int) -> None:
        """Refuse a file with bytes that are not UTF-8, in a row that begins at a byte."""
        with open_binary(self._path) as file:
            before = file.read(place)
            check_text(self._path, file.readline(), 1 + before.count(NEWLINE))

    def _check_separator(self) -> None:
        found = next((sign for sign in OTHER_SEPARATORS if sign in self.columns[0]), None)
        if len(self.columns) == 1 and found is not None:
            raise InputError(
                f"the values of {str(self._path)!r} are separated by {OTHER_SEPARATORS[found]}, "
                f"and commas are expected: give --separator {found!r} (separator={found!r}), and "
                "--decimal ',' if numbers have decimal commas",
                parameter="separator",
            )


def _refuse_open_quote(path: Path, separator: bytes) -> None:
    """Refuse a file with a quote that is never closed."""
    opened: int | None = None
    with open_binary(path) as file:
        for number, line in enumerate(file, start=1):
            opened = _quote_after(line, number, opened, separator)
    if opened is not None:
        raise InputError(
            f"{str(path)!r} has a quote in line {opened} that is never closed, so the rest of the "
            "file would be one value: close the quote, or remove it"
        )


INDEX = "__index_level_"
"""Beginning of the name that pyarrow gives to the unnamed index of a pandas data frame."""
CONVERSION_ERRORS = (TypeError, ValueError, OverflowError, pa.ArrowException)
"""Errors of pyarrow if it cannot convert an object."""


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
    columns = _columns(source)
    if columns is None:
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


def _columns(source: Any) -> dict[str, Any] | None:
    """Return the values of each column, None for missing values; None if there are no columns."""
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
            f"column {name!r} does not hold one value for each row ({error}): give a list or an "
            "array of one dimension"
        ) from error
    return pa.array([None if value is None else str(value) for value in values], pa.string())


BATCH_LINES = 1 << 16
"""Lines of a batch: their objects take some tens of megabytes."""


class JsonLinesSource:
    """A file with one JSON object in each line; empty lines are ignored.

    The fields of an object inside of a row are columns, too: ``{"context": {"age": 40}}`` has the
    column ``context_age``. ``columns`` are the names that occur in the first ``BATCH_LINES`` lines,
    and ``numeric`` those of the columns that hold numbers there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        first = next(self._batches(None, BadRows()), None)
        if first is None or not first.num_columns:
            raise InputError(
                f"{str(path)!r} begins with a brace and has no line that is a JSON object: give a "
                "file with one object in each line, or a CSV or Parquet file"
            )
        self.columns: list[str] = first.schema.names
        self.numeric = numeric_columns(first.schema) | mostly_numbers(first)

    def batches(self, columns: list[str], bad: BadRows) -> Iterator[Any]:
        """Yield all rows; lines that are not JSON objects are added to ``bad.lines``."""
        yield from self._batches(columns, bad)

    def _batches(self, columns: list[str] | None, bad: BadRows) -> Iterator[Any]:
        bad.first_line = 1
        with open_binary(self._path) as file:
            lines = _not_empty(file, bad)
            number = 0
            while chunk := list(islice(lines, BATCH_LINES)):
                rows = []
                for line in chunk:
                    number += 1
                    row = _decoded(line)
                    if row is None:
                        bad.lines.append(number)
                    else:
                        rows.append(row)
                if rows:
                    yield _batch(rows, columns)


def _not_empty(file: Iterable[bytes], bad: BadRows) -> Iterator[bytes]:
    """Yield the lines that are rows; after an empty line, rows and lines have other numbers."""
    for line in file:
        if line.strip():
            yield line
        else:
            bad.first_line = None


def _decoded(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line with nested fields as columns; None if it is not an object."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    row: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            row.update({f"{name}_{inner}": one for inner, one in value.items()})
        else:
            row[name] = value
    return row


def _batch(rows: list[dict[str, Any]], columns: list[str] | None) -> Any:
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    table, _ = arrow_table({name: [row.get(name) for row in rows] for name in names})
    combined = table.combine_chunks().to_batches()
    return combined[0] if combined else pa.RecordBatch.from_pylist([])


class LazyFrame:
    """A query that has not been run: a lazy frame of polars, or a relation of DuckDB.

    The query is run for its first rows when it is opened, and for the columns that a log needs when
    it is read.
    """

    def __init__(self, query: Any) -> None:
        self._query = query

    @staticmethod
    def is_query(source: Any) -> bool:
        """Return whether an object is a query that has not been run."""
        return _is_polars(source) or _is_duckdb(source)

    def first_rows(self, count: int) -> Any:
        """Return the first rows of all columns as a table of pyarrow."""
        query = self._query.head(count) if _is_polars(self._query) else self._query.limit(count)
        return _computed(query)

    def batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        """Run the query and yield the columns in batches."""
        if _is_polars(self._query):
            query = self._query.select(columns)
        else:
            quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
            query = self._query.project(quoted)
        yield from _computed(query).to_batches(rows)


def _is_polars(source: Any) -> bool:
    return hasattr(source, "collect_schema") and hasattr(source, "collect")


def _is_duckdb(source: Any) -> bool:
    return hasattr(source, "to_arrow_table") and hasattr(source, "project")


def _computed(query: Any) -> Any:
    try:
        table = query.collect() if _is_polars(query) else query.to_arrow_table()
    except Exception as error:
        raise InputError(
            f"the query of the log cannot be run ({one_line(error)}); one that can be is allowed: "
            "run it by itself, and give its result"
        ) from error
    return arrow_table(table)[0]


TABLE_BATCH_ROWS = 1 << 17
"""Rows of a batch: enough for fast columns, few enough for little memory."""
READ_ERRORS = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError, duckdb.Error)
"""Errors of a file that cannot be read or is damaged."""


class Source(NamedTuple):
    """A log that can be read once, in batches.

    ``numeric`` are the columns that hold numbers, judged by the first rows. ``schema`` is the one
    that the export of a bandit carries in its metadata; None for other logs.
    """

    name: str
    columns: list[str]
    numeric: set[str]
    schema: Schema | None
    batches: Callable[[list[str], BadRows], Iterator[Any]]


def open_one_file(path: Path, text: TextFormat = PLAIN) -> Source:
    """Open a Parquet file, or a file of CSV or JSON lines, which gzip may have compressed."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}: check the path")
    try:
        return _from_file(path, text)
    except READ_ERRORS as error:
        raise _unreadable(path, error) from error


def _from_file(path: Path, text: TextFormat) -> Source:
    with open_binary(path) as file:
        start = file.read(1 << 12)
    is_parquet = start[:4] == b"PAR1"
    if not start.strip():
        raise InputError(
            f"{str(path)!r} is empty, and a log must have a header and rows: check the file"
        )
    if path.suffix.lower() == ".parquet" and not is_parquet:
        raise InputError(
            f"{str(path)!r} is called .parquet and is not a Parquet file: if it is a CSV file, "
            "give it the ending .csv"
        )
    if is_parquet:
        return _from_parquet(path)
    is_json = start.lstrip().startswith(b"{")
    return _from_text(path, JsonLinesSource(path) if is_json else CsvSource(path, text))


def source_of_table(source: Any) -> Source:
    """Open a data frame, a lazy one, or anything that pyarrow turns into a table."""
    if LazyFrame.is_query(source):
        return _from_lazy_frame(LazyFrame(source))
    table, as_text = arrow_table(source)
    schema = table.schema
    first = table.select(as_text).to_batches(TABLE_BATCH_ROWS)[:1]
    numeric = numeric_columns(schema) | mostly_numbers(first[0] if first else None)

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from table.select(columns).to_batches(TABLE_BATCH_ROWS)

    return Source("the table", table.column_names, numeric, _schema_in_metadata(schema), batches)


def _from_lazy_frame(frame: LazyFrame) -> Source:
    first = frame.first_rows(TABLE_BATCH_ROWS)

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from frame.batches(columns, TABLE_BATCH_ROWS)

    return Source("the query", first.column_names, numeric_columns(first.schema), None, batches)


def _from_parquet(path: Path) -> Source:
    file = parquet.ParquetFile(path, pre_buffer=False)
    schema = file.schema_arrow

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from _naming_file(path, file.iter_batches(TABLE_BATCH_ROWS, columns=columns))

    return Source(
        str(path), schema.names, numeric_columns(schema), _schema_in_metadata(schema), batches
    )


def _from_text(path: Path, source: CsvSource | JsonLinesSource) -> Source:
    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from _naming_file(path, source.batches(columns, bad))

    return Source(str(path), source.columns, source.numeric, None, batches)


def _naming_file(path: Path, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the batches; an error while reading them becomes one that names the file."""
    try:
        yield from batches
    except READ_ERRORS as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"cannot read {str(path)!r}: {error}")


def _schema_in_metadata(schema: Any) -> Schema | None:
    text = (schema.metadata or {}).get(METADATA.encode())
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=known_type(Schema))
    except msgspec.DecodeError as error:
        raise InputError(
            f"the schema in the metadata of the log cannot be read: {error}; export the log again, "
            "or give it as a CSV file"
        ) from error


ENDINGS = (".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
"""Endings of the files of a folder that are read; other files are left alone."""
HIDDEN = (".", "_")
"""Files and folders that begin so are not data: ``_SUCCESS``, ``.ipynb_checkpoints``."""


def files_of(source: str | Path) -> list[Path] | None:
    """Return the files of a folder or a pattern such as ``logs/*.parquet``, sorted by their path.

    None if ``source`` is the path of one file, or of none. A file whose name contains a bracket or
    a star is a file, not a pattern.
    """
    path = Path(source)
    if path.is_dir():
        return _in_folder(path)
    if path.exists() or not has_magic(str(source)):
        return None
    base = Path(path.anchor)
    files = sorted(one for one in base.glob(str(path.relative_to(base))) if one.is_file())
    if not files:
        raise InputError(
            f"no file matches {str(source)!r}: check the pattern, and put it into quotes so that "
            "the shell does not replace it"
        )
    return files


def _in_folder(folder: Path) -> list[Path]:
    inside = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [path for path in inside if not _hidden(path.relative_to(folder))]
    read = [path for path in files if path.name.lower().endswith(ENDINGS)]
    if not read:
        raise InputError(
            f"the folder {str(folder)!r} has no file of a log: a log is Parquet, CSV or JSON lines "
            f"({', '.join(ENDINGS)}); name a folder with such files, or one file"
        )
    return read


def _hidden(path: Path) -> bool:
    return any(part.startswith(HIDDEN) for part in path.parts)


def joined_source(name: str, files: Sequence[Path], open_file: Callable[[Path], Source]) -> Source:
    """Return the rows of several files, one after the other, as one source.

    All files need the same columns, in any order. Files are opened one at a time.
    """
    first = open_file(files[0])
    numeric = set(first.numeric)
    for path in files[1:]:
        other = open_file(path)
        _check_same(first, other)
        # A column is a number only if it is one in every file.
        numeric &= other.numeric

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        before = 0
        for path in files:
            rows, of_file = 0, BadRows()
            for batch in open_file(path).batches(columns, of_file):
                rows += batch.num_rows
                yield batch
            # Rows are counted over all files, as the reader counts them.
            bad.lines.extend(array("q", (before + line for line in of_file.lines)))
            before += rows + len(of_file.lines)

    title = f"{name} ({len(files)} files)"
    return Source(title, first.columns, numeric, first.schema, batches)


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


def open_source(source: Any, text: TextFormat = PLAIN) -> Source:
    """Open a file, a folder or pattern of files, a data frame, or a table of columns.

    Files are Parquet, CSV or JSON lines; gzip may have compressed the last two.
    """
    if not isinstance(source, (str, Path)):
        return source_of_table(source)
    files = files_of(source)
    if files is None:
        return open_one_file(Path(source), text)
    return joined_source(str(source), files, partial(open_one_file, text=text))
