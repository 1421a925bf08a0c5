"""Whether a file is text that can be read as CSV."""

import codecs
import re
from pathlib import Path

from submax.core.errors import InputError

BLOCK = 1 << 24
"""Bytes that are looked at at a time."""
INSIDE = re.compile(rb'(?:[^"]|"")*+')
"""What stands between quotes; two of them are one that is meant."""


def check_text(path: Path) -> bool:
    """Refuse what is no text in UTF-8, or has a quote without an end; whether there are quotes."""
    quotes = lines = returns = 0
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            _check_block(path, decoder, block, lines)
            quotes += block.count(b'"')
            lines += block.count(b"\n")
            returns += block.count(b"\r")
    _check_block(path, decoder, b"", lines)
    if lines + returns == 0:
        raise InputError(f"{str(path)!r} has one line: a header at most, and no rows")
    # Every quote that is opened is closed, and one inside is doubled: their number is even.
    opened = _open_quote(path) if quotes % 2 else None
    if opened is not None:
        raise InputError(
            f"{str(path)!r} has a quote in line {opened} that is never closed: all that follows "
            "would be one value"
        )
    return quotes > 0


def _check_block(path: Path, decoder: codecs.IncrementalDecoder, block: bytes, lines: int) -> None:
    zero = block.find(b"\0")
    if zero >= 0:
        line = lines + 1 + block[:zero].count(b"\n")
        raise InputError(f"{str(path)!r} is no text: line {line} holds a zero byte")
    try:
        decoder.decode(block, final=not block)
    except UnicodeDecodeError as error:
        line = lines + 1 + error.object[: error.start].count(b"\n")
        raise InputError(
            f"{str(path)!r} is not text in UTF-8: line {line} holds the byte "
            f"0x{error.object[error.start]:02x}; write it again with that encoding"
        ) from error


def _open_quote(path: Path) -> int | None:
    """The line of a quote that is never closed."""
    opened: int | None = None
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            opened = _after(line, number, opened)
    return opened


def _after(line: bytes, number: int, opened: int | None) -> int | None:
    """Where the quote was opened in which the line ends; a quote counts where a value begins."""
    place = 0
    while place < len(line):
        if opened is None and line[place : place + 1] == b'"':
            opened = number
            place += 1
        if opened is not None:
            inside = INSIDE.match(line, place)
            place = inside.end() if inside else place
            if place == len(line):
                break
            opened = None
        comma = line.find(b",", place)
        place = comma + 1 if comma >= 0 else len(line)
    return opened
