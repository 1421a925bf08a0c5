"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write beside the file, then put it in place; a crash leaves the old one or the new one."""
    partial = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
