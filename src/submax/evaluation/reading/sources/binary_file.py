"""Opens a file of bytes that may be compressed by gzip."""

import gzip
from pathlib import Path
from typing import BinaryIO, cast

GZIP = b"\x1f\x8b"
"""The first bytes of every file that gzip has written."""


def is_compressed(path: Path) -> bool:
    """Return whether a file was compressed by gzip, whatever its name is."""
    with path.open("rb") as file:
        return file.read(len(GZIP)) == GZIP


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading; one that gzip has compressed is decompressed on the way."""
    return cast(BinaryIO, gzip.open(path, "rb")) if is_compressed(path) else path.open("rb")
