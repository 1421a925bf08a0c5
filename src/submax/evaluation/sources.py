"""Files and tables as one table of DuckDB, and where each of its rows is."""

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from glob import has_magic
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import duckdb
import msgspec
import pyarrow as pa

from submax.core.decoding import known_type
from submax.core.errors import InputError, one_line
from submax.schema.schema import METADATA, Schema

BATCH_ROWS = 1 << 17
"""Rows of a batch: enough for fast columns, few enough for little memory."""
MOST_LINES = 1_000_000
"""Rows whose line is found; nobody opens a longer file in an editor, and it would take seconds."""
READ_ERRORS = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError, duckdb.Error)
"""Errors of a file that cannot be read or is damaged."""
CONVERSION_ERRORS = (TypeError, ValueError, OverflowError, pa.ArrowException)
"""Errors of pyarrow if it cannot convert an object."""
ENDINGS = (".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
"""Endings of the files of a folder that are read; other files are left alone."""
HIDDEN = (".", "_")
"""Files and folders that begin so are not data: ``_SUCCESS``, ``.ipynb_checkpoints``."""
GZIP, NEWLINE = b"\x1f\x8b", b"\n"
"""The first bytes of every file that gzip has written, and the end of a line."""
CHECKED_BYTES = 1 << 20
"""Bytes at the beginning of a file that must be text, before its header is read."""
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators that are recognized in order to say how they are given."""
DECIMAL_COMMA = r"^(\s*[-+]?\d*),(\d+\s*)$"
"""A number with a decimal comma."""
INDEX = "__index_level_"
"""Beginning of the name that pyarrow gives to the unnamed index of a pandas data frame."""


class TextFormat(NamedTuple):
    """The sign between the values of a CSV file, and the one before the digits of a fraction."""

    separator: str = ","
    decimal: str = "."

    def check(self) -> "TextFormat":
        """Return the format; refuse signs that cannot be told apart."""
        if len(self.separator) != 1 or self.separator in '"\n\r' or self.separator.isalnum():
            raise InputError(
                f"the separator is {self.separator!r}: give a single character, such as ';' "
                "or a tab",
                parameter="separator",
            )
        if self.decimal not in (".", ","):
            raise InputError(
                f"the decimal sign is {self.decimal!r}: give '.' or ','",
                parameter="decimal",
            )
        return self


PLAIN = TextFormat()
"""The usual format: commas between values, and a point before a fraction."""


class Part(NamedTuple):
    """A file, or a table, as a ``table`` of DuckDB with the columns c0, c1 and so on.

    ``lines`` yields the line at which each row begins, as an editor counts; None if rows are not
    lines of a file. ``rejected`` returns the numbers, among all rows, of those that DuckDB left
    out, after the part was read, and ``why`` says what is wrong with them. ``schema`` is the one
    that the export of a bandit carries. The columns that are ``untyped`` are text because nothing
    said of which type they are.
    """

    name: str
    columns: list[str]
    table: str
    lines: Callable[[], Iterator[int]] | None = None
    rejected: Callable[[], list[int]] = list
    schema: Schema | None = None
    untyped: Sequence[str] = ()
    why: str = "has another number of values than the header"


class Source:
    """A log that DuckDB reads, of one part or of several with the same columns.

    ``table`` has the columns c0, c1 and so on, and ``types`` are those of DuckDB.
    """

    def __init__(self, name: str, connection: Any, parts: Sequence[Part]) -> None:
        self.name, self.connection, self._parts = name, connection, parts
        first, *others = parts
        self.columns, self.schema, tables = first.columns, first.schema, [first.table]
        self.untyped, self._several = first.untyped, bool(others)
        for part in others:
            _check_same(first, part)
            places = (part.columns.index(column) for column in first.columns)
            cells = ", ".join(f"c{place} as c{new}" for new, place in enumerate(places))
            tables.append(f"(select {cells} from {part.table})")
        self.table = f"({' union all '.join(f'select * from {one}' for one in tables)})"
        described = self.rows(f"describe select * from {self.table}")
        self.types = {name: one[1] for name, one in zip(self.columns, described, strict=True)}

    def cell(self, column: str) -> str:
        """Return the name of a column in SQL."""
        return f"c{self.columns.index(column)}"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a short result."""
        try:
            return cast(list[tuple[Any, ...]], self.connection.execute(query).fetchall())
        except READ_ERRORS as error:
            raise unreadable(self.name, error) from error

    def batches(self, query: str) -> Iterator[Any]:
        """Yield the rows of a long result as batches of pyarrow, in the order of the log."""
        try:
            yield from self.connection.sql(query).to_arrow_reader(BATCH_ROWS)
        except READ_ERRORS as error:
            raise unreadable(self.name, error) from error

    @cached_property
    def rejected(self) -> list[list[int]]:
        """The rows of each part that are no rows, such as those with too few values."""
        return [part.rejected() for part in self._parts]

    def first_rejected(self) -> str:
        """Return where the first row is that is no row, and what is wrong with it."""
        place = next(place for place, rows in enumerate(self.rejected) if rows)
        part = self._parts[place]
        return f"{self._in_part(part, self.rejected[place][0])} {part.why}"

    def row(self, number: int) -> str:
        """Return where a row is: its number and line in its file, and which of several files.

        The ``number`` does not count rows that DuckDB left out; the answer does.
        """
        for part, rejected in zip(self._parts, self.rejected, strict=True):
            rows = (
                self.rows(f"select count(*) from {part.table}")[0][0] if self._several else number
            )
            if number <= rows:
                for one in rejected:
                    number += one <= number
                return self._in_part(part, number)
            number -= rows
        raise ValueError(f"the log has no row {number}")

    def _in_part(self, part: Part, number: int) -> str:
        line = None
        if part.lines is not None and number <= MOST_LINES:
            line = next(islice(part.lines(), number - 1, None), None)
        where = f"row {number}" if line is None else f"row {number} (line {line})"
        return f"{where} of {part.name}" if self._several else where


def open_source(source: Any, text: TextFormat = PLAIN) -> Source:
    """Open a file, a folder or pattern of files, a data frame, or a table of columns.

    Files are Parquet, CSV or JSON lines; gzip may have compressed the last two. All files of a
    folder need the same columns, in any order.
    """
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    if isinstance(source, (str, Path)):
        parts = [_opened(path, text, connection) for path in files_of(source)]
        name = parts[0].name if len(parts) == 1 else f"{source} ({len(parts)} files)"
        return Source(name, connection, parts)
    table, untyped = arrow_table(source)
    columns, metadata = table.column_names, table.schema.metadata or {}
    connection.register("log", table.rename_columns([f"c{i}" for i in range(len(columns))]))
    schema = _schema_in(metadata.get(METADATA.encode()))
    part = Part("the table", columns, "log", schema=schema, untyped=untyped)
    return Source(part.name, connection, [part])


def files_of(source: str | Path) -> Sequence[Path]:
    """Return the files of a folder or a pattern such as ``logs/*.parquet``, sorted by their path.

    Any other path is that of one file, which may not exist. A file whose name contains a bracket or
    a star is a file, not a pattern.
    """
    path = Path(source)
    if path.is_dir():
        files = [
            one
            for one in sorted(path.rglob("*"))
            if one.is_file()
            and one.name.lower().endswith(ENDINGS)
            and not any(part.startswith(HIDDEN) for part in one.relative_to(path).parts)
        ]
        missing = (
            f"the folder {str(path)!r} has no file of a log: a log is Parquet, CSV or JSON lines "
            f"({', '.join(ENDINGS)}); name a folder with such files, or one file"
        )
    elif path.exists() or not has_magic(str(source)):
        return [path]
    else:
        base = Path(path.anchor)
        files = sorted(one for one in base.glob(str(path.relative_to(base))) if one.is_file())
        missing = (
            f"no file matches {str(source)!r}: check the pattern, and quote it, so the shell does "
            "not expand it"
        )
    if not files:
        raise InputError(missing)
    return files


def _opened(path: Path, text: TextFormat, connection: Any) -> Part:
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
            return _from_parquet(path, connection)
        if path.suffix.lower() == ".parquet":
            raise InputError(
                f"{str(path)!r} is not a Parquet file: if it is a CSV file, rename it to .csv"
            )
        if start.lstrip().startswith(b"{"):
            return _from_json(path, connection)
        return _from_csv(path, text.check(), connection)
    except READ_ERRORS as error:
        raise unreadable(str(path), error) from error


def unreadable(name: str, error: Exception) -> InputError:
    """Return the error about what cannot be read."""
    if "strict_mode" in str(error):
        return InputError(
            f"cannot read {name!r}: a line ends otherwise than the first one, or a quote in it is "
            "not closed; write all lines with the same end"
        )
    return InputError(f"cannot read {name!r}: {one_line(error)}")


def quoted(text: object, sign: str = "'") -> str:
    """Return a text for SQL: a value, or a name with the sign of names."""
    return f"{sign}{str(text).replace(sign, 2 * sign)}{sign}"


def is_compressed(path: Path) -> bool:
    """Return whether a file was compressed by gzip, whatever its name is."""
    with path.open("rb") as file:
        return file.read(len(GZIP)) == GZIP


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading; one that gzip has compressed is decompressed on the way."""
    return cast(BinaryIO, gzip.open(path, "rb")) if is_compressed(path) else path.open("rb")


def _check_same(first: Part, other: Part) -> None:
    """Refuse a file whose columns, or whose exported schema, differ from those of the first."""
    missing = sorted(set(first.columns) ^ set(other.columns))
    if missing:
        raise InputError(
            f"{first.name} and {other.name} have different columns "
            f"({', '.join(missing[:5])}): name only files with the same columns, such "
            "as 'logs/*.parquet'"
        )
    if first.schema != other.schema:
        raise InputError(
            f"{first.name} and {other.name} are exports of bandits with different actions, "
            "contexts or rewards: evaluate them one at a time"
        )


# Parquet and JSON lines --------------------------------------------------------------------------


def _from_parquet(path: Path, connection: Any) -> Part:
    file = quoted(path)
    described = connection.execute(f"describe select * from read_parquet({file})").fetchall()
    known = connection.execute(
        f"select value from parquet_kv_metadata({file}) where decode(key) = {quoted(METADATA)}"
    ).fetchone()
    places = ", ".join(f"c{place}" for place in range(len(described)))
    table = f"read_parquet({file}) parquet({places})"
    return Part(
        str(path), [one[0] for one in described], table, schema=_schema_in(known and known[0])
    )


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


def _from_json(path: Path, connection: Any) -> Part:
    """Open a file with one JSON object in each line; empty lines are ignored.

    The fields of an object inside of a row are columns, too: ``{"context": {"age": 40}}`` has the
    column ``context_age``. The columns are those of the first rows. All values are read as text.
    """
    lines = (
        f"(select json, coalesce(json_type(json) = 'OBJECT', false) as good from "
        f"read_ndjson_objects({quoted(path)}, ignore_errors=true, "
        f"compression='{'gzip' if is_compressed(path) else 'uncompressed'}', "
        "maximum_object_size=16777216))"
    )
    structure = f"select json_group_structure(json) from (from {lines} where good limit 20000)"
    found = connection.execute(structure).fetchone()
    fields = json.loads(found[0]) if found and found[0] else None
    if not isinstance(fields, dict) or not fields:
        raise InputError(
            f"{str(path)!r} begins with a brace and has no line that is a JSON object: give a "
            "file with one object in each line, or a CSV or Parquet file"
        )
    kinds: dict[str, Any] = {}
    cells: dict[str, str] = {}
    for name, kind in fields.items():
        inner = list(kind) if isinstance(kind, dict) else []
        kinds[name] = dict.fromkeys(inner, "VARCHAR") if inner else "VARCHAR"
        of_row = f"row.{quoted(name, chr(34))}"
        cells |= {f"{name}_{one}": f"{of_row}.{quoted(one, chr(34))}" for one in inner}
        cells |= {} if inner else {name: of_row}
    named = ", ".join(f"{cell} as c{place}" for place, cell in enumerate(cells.values()))
    read = f"from_json(json, {quoted(json.dumps(kinds))}) as row from {lines} where good"

    def rejected() -> list[int]:
        bad = f"select row from (select good, row_number() over () as row from {lines})"
        return [row for (row,) in connection.execute(f"{bad} where not good").fetchall()]

    def numbers() -> Iterator[int]:
        with open_binary(path) as file:
            yield from (number for number, line in enumerate(file, start=1) if line.strip())

    names = [*cells]
    table = f"(select {named} from (select {read}))"
    return Part(str(path), names, table, numbers, rejected, None, names, "is not a JSON object")


# CSV ---------------------------------------------------------------------------------------------


def _from_csv(path: Path, text: TextFormat, connection: Any) -> Part:
    """Open a CSV file with a header. Rows are counted from 1 after it; empty lines are no rows.

    All columns are read as text, so a check can name what is no number.
    """
    columns, skip = _header(path, text)
    kinds = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(columns)))
    table = (
        f"read_csv({quoted(path)}, auto_detect=false, columns={{{kinds}}}, header=true, "
        f"skip={skip}, delim={quoted(text.separator)}, quote='\"', escape='\"', "
        f"compression='{'gzip' if is_compressed(path) else 'none'}', ignore_errors=true, "
        "store_rejects=true)"
    )
    if text.decimal != PLAIN.decimal:
        pointed = f"regexp_replace(columns(*), {quoted(DECIMAL_COMMA)}, '\\1.\\2')"
        table = f"(select {pointed} from {table})"

    def rejected() -> list[int]:
        begin = "line_byte_position - 1 + cast(starts_with(csv_line, chr(10)) as integer)"
        # After a line end of Windows, the position is a byte early.
        found = connection.execute(
            f"select distinct {begin}, error_type from reject_errors join reject_scans "
            f"using (scan_id, file_id) where file_path = {quoted(path)} order by all"
        ).fetchall()
        return _rejected_rows(path, text.separator, dict(found)) if found else []

    def lines() -> Iterator[int]:
        return (line for line, _, _ in islice(_csv_rows(path, text.separator), 1, None))

    return Part(str(path), columns, table, lines, rejected, None, columns)


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
            f"the values of {str(path)!r} are separated by {OTHER_SEPARATORS[found]}: "
            f"give --separator {found!r} (separator={found!r}), and --decimal ',' if "
            "numbers have decimal commas",
            parameter="separator",
        )
    return columns, skip


def check_text(path: Path, data: bytes, line: int) -> None:
    """Refuse bytes that are not text in UTF-8; ``line`` is the line in which they begin."""
    place, what = data.find(b"\0"), "a zero byte: give a CSV file in UTF-8, or a Parquet file"
    if place < 0:
        try:
            data.decode()
            return
        except UnicodeDecodeError as error:
            place = error.start
            what = f"the byte 0x{data[place]:02x}: convert the file to UTF-8"
    line += data[:place].count(NEWLINE)
    raise InputError(f"{str(path)!r} is not text in UTF-8, since line {line} contains {what}")


def _csv_rows(path: Path, separator: str) -> Iterator[tuple[int, int, int]]:
    """Yield the rows of a CSV file, the header first; empty lines are no rows.

    These are the line at which a row begins, and the line and byte at which the next one does.
    """
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
                yield begin, reader.line_num + 1, place
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
    number, last = 0, (1, 1, 0)
    try:
        for number, last in enumerate(_csv_rows(path, separator)):
            while waiting and waiting[-1] < last[2]:
                waiting.pop()
                found.append(max(number, 1))
        line = last[0]
        is_open = bool(found) and found[-1] == number and last[1] - line > 1
    except csv.Error:
        # The value is longer than any that Python reads.
        is_open, line = True, last[1]
    if is_open:
        raise InputError(
            f"{str(path)!r} has a quote in the row that begins in line {line} that is never "
            "closed, so the rest of the file would be one value: close the quote, or remove it"
        )
    return found + [max(number, 1)] * len(waiting)


# Data frames and other tables --------------------------------------------------------------------


def arrow_table(source: Any) -> tuple[Any, list[str]]:
    """Return a table of pyarrow, and the columns of several types, which became text."""
    try:
        if hasattr(source, "collect_schema") and hasattr(source, "collect"):
            # A lazy frame of polars.
            source = source.collect()
        elif hasattr(source, "to_arrow_table") and hasattr(source, "project"):
            # A relation of DuckDB.
            source = source.to_arrow_table()
    except Exception as error:
        raise InputError(
            f"the query of the log cannot be run ({one_line(error)}): correct the "
            "query, or give its result"
        ) from error
    untyped: list[str] = []
    try:
        # Polars and some other data frames have their own method.
        table = source.to_arrow() if hasattr(source, "to_arrow") else pa.table(source)
    except CONVERSION_ERRORS as error:
        table, untyped = _column_by_column(source, error)
    kept = [place for place, name in enumerate(table.column_names) if not name.startswith(INDEX)]
    return table.select(kept), untyped


def _column_by_column(source: Any, error: Exception) -> tuple[Any, list[str]]:
    """Return a table, in which columns that pyarrow cannot convert are text."""
    if isinstance(source, Mapping):
        columns = {str(name): values for name, values in source.items()}
    elif hasattr(source, "notna") and source.columns.is_unique:
        objects = source.astype(object).where(source.notna(), None)
        columns = {str(name): objects[name] for name in source.columns}
    else:
        raise InputError(
            f"a log cannot be read from a {type(source).__name__}: give a file, a data frame or a "
            f"table from names to columns ({error})"
        ) from error
    arrays, untyped = {}, []
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(values)
        except CONVERSION_ERRORS as refused:
            single = isinstance(values, str) or not hasattr(values, "__iter__")
            if single or getattr(values, "ndim", 1) != 1:
                raise InputError(
                    f"column {name!r} does not hold one value for each row ({refused}): give a "
                    "list or an array of one dimension"
                ) from refused
            texts = [None if value is None else str(value) for value in values]
            arrays[name] = pa.array(texts, pa.string())
            untyped.append(name)
    try:
        return pa.table(arrays), untyped
    except CONVERSION_ERRORS as refused:
        raise InputError(
            f"the columns do not form a table: {refused}; give columns of the same length"
        ) from refused
