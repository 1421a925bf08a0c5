"""Results of cells that are rows of a table, on disk."""

import json
from pathlib import Path
from typing import Any

from submax.core.running.whole_file import whole_file

Row = dict[str, Any]


class RowsStore:
    """A folder with one JSON file for each finished cell, each file written atomically."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def finished(self, key: str) -> bool:
        """Whether the cell has a complete result file."""
        try:
            self.read(key)
        except (OSError, ValueError):
            return False
        return True

    def write(self, key: str, result: list[Row]) -> None:
        """Store rows; after a crash the file is the old or the new one, never a partial one."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with whole_file(self._path(key)) as file:
            file.write(json.dumps(result).encode())

    def read(self, key: str) -> list[Row]:
        """Return the rows of a finished cell."""
        rows: list[Row] = json.loads(self._path(key).read_text(encoding="utf-8"))
        return rows

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"
