"""Checks that a file is text that can be read as CSV."""

import codecs
import re
from pathlib import Path

from submax.core.errors import InputError
from submax.evaluation.reading.sources.binary_file import open_binary

BLOCK_BYTES = 1 << 24
"""Bytes that are checked at a time: 16 MB, which bounds the memory for files of any size."""
QUOTED = re.compile(rb'(?:[^"]|"")*+')
"""The content of a quoted value, in which a doubled quote stands for one quote."""


def check_text(path: Path) -> bool:
    """Return whether a file contains quotes.

    Refuse a file that is not text in UTF-8, has only one line, or has a quote that is not closed.
    """
    quotes = lines = returns = 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_binary(path) as file:
        while block := file.read(BLOCK_BYTES):
            _check_block(path, decoder, block, lines)
            quotes += block.count(b'"')
            lines += block.count(b"\n")
            returns += block.count(b"\r")
    _check_block(path, decoder, b"", lines)
    if lines + returns == 0:
        raise InputError(
            f"{str(path)!r} has only one line, so that there are no rows: write a header, and a "
            "line for each decision"
        )
    # Quotes that are opened are closed, and quotes inside are doubled: their number is even.
    opened = _open_quote(path) if quotes % 2 else None
    if opened is not None:
        raise InputError(
            f"{str(path)!r} has a quote in line {opened} that is never closed, so that the rest of "
            "the file would be one value: close the quote, or remove it"
        )
    return quotes > 0


def _check_block(path: Path, decoder: codecs.IncrementalDecoder, block: bytes, lines: int) -> None:
    zero = block.find(b"\0")
    if zero >= 0:
        line = lines + 1 + block[:zero].count(b"\n")
        raise InputError(
            f"{str(path)!r} is not text, since line {line} contains a zero byte: give a CSV file "
            "in UTF-8, or a Parquet file"
        )
    try:
        decoder.decode(block, final=not block)
    except UnicodeDecodeError as error:
        line = lines + 1 + error.object[: error.start].count(b"\n")
        raise InputError(
            f"{str(path)!r} is not text in UTF-8, since line {line} contains the byte "
            f"0x{error.object[error.start]:02x}: convert the file to UTF-8"
        ) from error


def _open_quote(path: Path) -> int | None:
    """Return the line of a quote that is never closed; None if there is none."""
    opened: int | None = None
    with open_binary(path) as file:
        for number, line in enumerate(file, start=1):
            opened = _quote_after(line, number, opened)
    return opened


def _quote_after(line: bytes, number: int, opened: int | None) -> int | None:
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
        comma = line.find(b",", place)
        place = comma + 1 if comma >= 0 else len(line)
    return opened
