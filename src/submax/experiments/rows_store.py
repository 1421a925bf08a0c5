"""Cells whose results are rows of a table, on disk."""

import json
from pathlib import Path
from typing import Any

from submax.core.running.whole_file import whole_file

Row = dict[str, Any]


class RowsStore:
    """One JSON file for each finished cell, written whole or not at all."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def finished(self, key: str) -> bool:
        """Whether the cell is there, and whole."""
        try:
            self.read(key)
        except (OSError, ValueError):
            return False
        return True

    def write(self, key: str, result: list[Row]) -> None:
        """Store a finished cell; a crash leaves the old file or the new one, never half of it."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with whole_file(self._path(key)) as file:
            file.write(json.dumps(result).encode())

    def read(self, key: str) -> list[Row]:
        """A finished cell."""
        rows: list[Row] = json.loads(self._path(key).read_text(encoding="utf-8"))
        return rows

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"
